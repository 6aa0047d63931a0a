"""Data sets by name, and streams from files."""
