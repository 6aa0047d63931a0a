"""The base classes of all learners."""
