"""The pictures of docs/gallery.md, drawn by the programs that stand there.

Time: half a minute. --output DIR: into another folder.
"""

import argparse
import contextlib
import re
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs/gallery.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n^!\[[^\]]*\]\((\S+)\)$", re.MULTILINE | re.DOTALL)


def programs() -> dict[str, str]:
    """Return the programs of the page by the names of their pictures."""
    found = PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
    return {Path(picture).name: code for code, picture in found}


def draw(code: str, path: Path) -> None:
    """Run a program in a folder of its own and save its ``figure``."""
    names = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(code, path.stem, "exec"), names)
    names["figure"].savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=PAGE.with_suffix(""))
    folder = parser.parse_args().output
    for name, code in programs().items():
        draw(code, folder / name)
        print(f"wrote {folder / name}")


if __name__ == "__main__":
    main()
