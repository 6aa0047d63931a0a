"""All compiled code: one file an algorithm, and the files that they share."""
