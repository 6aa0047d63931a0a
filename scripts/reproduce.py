"""Draw the figures and tables of the papers, and say how that went and what there is to see.

Without options: a quick tour of the four papers on data that ships with the package, with less data
and a time limit of 4 seconds for each algorithm. Files get the suffix _quick, so full figures stay;
scripts that need other data are skipped.

``--benchmarks`` adds our own comparisons, of error and regret. ``--all`` runs every script with the
paper's settings on the data in OKLNUMBA_DATA or the cache, the benchmarks of speed
(``benchmark_*.py``) too; this takes two to three hours, more with the full SUSY. A script that
finds none of its data then counts as failed.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))  # both as a file and by python -m

from scripts.common import FIGURES, NO_DATA  # noqa: E402

QUICK = ["--quick", "--limit", "4"]
LINES, WIDTH = 10, 110  # of what a script prints, at most


def header(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def scripts(everything: bool, benchmarks: bool) -> list[Path]:
    """Return the scripts to run: those of the papers, then the benchmarks."""
    found = sorted(FOLDER.glob("papers/*.py"))
    if everything or benchmarks:
        found += sorted(FOLDER.glob("benchmarks/*.py"))
    found = [path for path in found if "\nReproduces: " in header(path)]
    return [path for path in found if everything or not path.stem.startswith("benchmark_")]


def run(script: Path, options: list[str], env: dict[str, str]) -> tuple[int, list[str], float]:
    """Return the exit status of a script, the lines that it printed, and the seconds it took."""
    start = time.monotonic()
    command = [sys.executable, "-m", f"scripts.{script.parent.name}.{script.stem}", *options]
    done = subprocess.run(
        command, env=env, cwd=FOLDER.parent, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if "compiles loops" not in line]
    return done.returncode, lines, time.monotonic() - start


def shorten(lines: list[str]) -> list[str]:
    """Return the first lines and the last one, cut to a width that fits on a screen."""
    if len(lines) > LINES:
        left_out = f"({len(lines) - LINES + 1} lines more, see the csv)"
        lines = [*lines[: LINES - 2], left_out, lines[-1]]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in lines]


def main() -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--benchmarks", action="store_true", help="our own comparisons, too")
    parser.add_argument("--all", action="store_true", help="the paper's settings, all data")
    parser.add_argument("--list", action="store_true", help="name the scripts and stop")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIR")
    args = parser.parse_args()
    if args.list:
        for path in scripts(everything=True, benchmarks=True):
            print(f"{path.name}: {header(path).splitlines()[0]}")
        return 0
    folder = args.output.resolve()
    options, failed, start = ["--output", str(folder)] + QUICK * (not args.all), [], time.time()
    chosen = scripts(args.all, args.benchmarks)
    # Those that measure speed have the machine for themselves.
    at_once = 1 if args.all or args.benchmarks else min(4, os.cpu_count() or 1)
    print(f"{len(chosen)} scripts, {at_once} at once", flush=True)
    with tempfile.TemporaryDirectory() as empty, ThreadPoolExecutor(at_once) as pool:
        env = dict(os.environ)
        if not args.all:  # only the package's own data are found
            env |= {"OKLNUMBA_CACHE": empty}
            env.pop("OKLNUMBA_DATA", None)
        jobs = {pool.submit(run, path, options, env): path for path in chosen}
        for number, job in enumerate(as_completed(jobs), start=1):
            (status, lines, seconds), path = job.result(), jobs[job]
            outcome = {0: "", NO_DATA: ", skipped"}.get(status, f", FAILED ({status})")
            if status and (status != NO_DATA or args.all):
                failed.append(path.name)
            print(f"\n{number} of {len(chosen)}, {path.stem}, {seconds:.0f} s{outcome}")
            print("\n".join(lines if status not in (0, NO_DATA) else shorten(lines)), flush=True)
    pictures = [path for path in sorted(folder.glob("*.png")) if path.stat().st_mtime >= start]
    print("\nPictures to open:", *pictures, sep="\n  ")
    if failed:
        print("\nFAILED:", ", ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
