"""Sweeps, tables, adversaries and games."""
