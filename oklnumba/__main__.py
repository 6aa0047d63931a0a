"""The command ``oklnumba``: ``oklnumba --help``, or ``python -m oklnumba --help``."""

import sys

from oklnumba.command.parser import main

if __name__ == "__main__":
    sys.exit(main())
