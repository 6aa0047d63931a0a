"""Faults made on purpose: odd arguments, no memory, damaged files, killed processes, threads."""
