"""Textbook versions, each from the definitions alone: what the fast ones are compared with."""
