"""okl.run and what it returns; wrappers that play several learners."""
