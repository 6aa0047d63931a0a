"""The command line, ``oklnumba`` or ``python -m oklnumba``: run, compare, data, warm-up."""
