"""The command line, ``oklnumba`` or ``python -m oklnumba``: run, compare and data."""
