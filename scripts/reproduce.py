"""Run the scripts of the figures and tables, and print one table of how they went.

Without arguments: a quick tour on the data that comes with the package, with a time limit of 8
seconds for each algorithm; 4 to 14 minutes on two cores, first compilation included. Files get the
suffix _quick, so full figures stay. Scripts that need other data are skipped.

``--all`` runs every script with the paper's settings on the data in OKLNUMBA_DATA or the cache,
the benchmarks of speed (``benchmark_*.py``) too; this takes two to three hours, more with the full
SUSY. A script that finds none of its data then counts as failed.

A file of papers/ or benchmarks/ is a script if its docstring says what it "Reproduces:"; common.py
has the options that it must take. One alone: ``python -m scripts.papers.li2023_tab2 --quick``.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import FIGURES, NO_DATA, print_table

FOLDER = Path(__file__).resolve().parent
QUICK = ["--quick", "--limit", "8"]


def header(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def scripts(everything: bool) -> list[Path]:
    """Return the scripts to run, in the order of their names."""
    files = [*FOLDER.glob("papers/*.py"), *FOLDER.glob("benchmarks/*.py")]
    found = [path for path in files if "\nReproduces: " in header(path)]
    wanted = [path for path in found if everything or not path.stem.startswith("benchmark_")]
    return sorted(wanted, key=lambda path: path.stem)


def run(script: Path, options: list[str], env: dict[str, str], everything: bool) -> dict[str, str]:
    print(f"--- {script.name} {' '.join(options)}", flush=True)
    start = time.monotonic()
    command = [sys.executable, "-m", f"scripts.{script.parent.name}.{script.stem}", *options]
    status = subprocess.run(command, env=env, cwd=FOLDER.parent).returncode
    outcome = "ok" if status == 0 else f"FAILED (exit {status})"
    if status == NO_DATA:
        outcome = "FAILED (no data)" if everything else "skipped (no data)"
    seconds = f"{time.monotonic() - start:.1f}"
    shown = " ".join(options[:-2]) or "the paper's settings"  # without --output
    return {"script": script.name, "options": shown, "outcome": outcome, "time (s)": seconds}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="the paper's settings, all data")
    parser.add_argument("--list", action="store_true", help="name the scripts and stop")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIR")
    args = parser.parse_args()
    if args.list:
        for path in scripts(everything=True):
            print(f"{path.name}: {header(path).splitlines()[0]}")
        return 0
    output = ["--output", str(args.output.resolve())]
    if args.all:
        rows = [run(path, output, dict(os.environ), True) for path in scripts(True)]
    else:
        with tempfile.TemporaryDirectory() as empty:  # only the package's own data are found
            env = os.environ | {"OKLNUMBA_CACHE": empty}
            env.pop("OKLNUMBA_DATA", None)
            rows = [run(path, QUICK + output, env, False) for path in scripts(False)]
    print_table(rows)
    return int(any(row["outcome"].startswith("FAILED") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
