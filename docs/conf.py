"""How Sphinx builds the site, ``sphinx-build -W docs site``; docstrings make the reference."""

import importlib
import inspect
import re
import shutil
from pathlib import Path

from sphinx.ext import autosummary

import oklnumba as okl
from oklnumba import catalogue

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "reference"  # made anew by every build

project = "oklnumba"
author = "the authors of oklnumba"
version = release = okl.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"oklnumba {okl.__version__}"
html_show_sphinx = html_show_copyright = html_copy_source = False
pygments_style = "friendly"

autodoc_typehints = "none"  # docstrings say types and shapes
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = napoleon_use_param = napoleon_use_ivar = False
smartquotes = False
napoleon_custom_sections = [("Remarks", "notes_style")]


autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "Fig.")  # no end of a sentence


# ---- the pages of the reference ----


def about(module: str) -> str:
    """Return the first sentence of a module's docstring."""
    text = inspect.getdoc(importlib.import_module(module)) or module
    return re.split(r"\.(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def table(names: list[str], module: str = "oklnumba") -> str:
    """Return a table of objects, each with a page of its own."""
    lines = [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
    return "\n".join([*lines, *(f"   ~{module}.{name}" for name in names), ""])


def heading(text: str, under: str = "-") -> str:
    """Return an underlined heading."""
    return f"{text}\n{under * len(text)}\n"


def families() -> dict[str, list[str]]:
    """Return the names in ``oklnumba`` by the module that has them, the catalogue's order first."""
    listed = [n for entry in catalogue.CATALOGUE for n in entry.names.split(", ") if "." not in n]
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys([*listed, *okl.__all__]):
        value = getattr(okl, name)
        if not inspect.ismodule(value) and getattr(value, "__name__", name) == name:
            found.setdefault(value.__module__, []).append(name)
    return found


def write_reference() -> None:
    """Write a page of all classes by family, and one of each public module."""
    shutil.rmtree(REFERENCE, ignore_errors=True)
    REFERENCE.mkdir()
    groups = families()
    pages = {
        "learners": ("Learners", "oklnumba.learners."),
        "around": ("Around learners", "oklnumba.wrappers."),
        "parts": ("Runs, kernels, features, dictionaries", "oklnumba."),
    }
    for page, (title, start) in pages.items():
        modules = [module for module in groups if module.startswith(start)]
        parts = [heading(title, "=")]
        if page == "learners":
            names = [name for module in modules for name in groups.pop(module)]
            parts += ["What all of them have:\n", table(["learners.learner.Learner"])]
            parts += ["Learners, those of one paper together:\n", table(names)]
        else:
            for module in modules:
                parts += [heading(about(module)), table(groups.pop(module))]
        (REFERENCE / f"{page}.rst").write_text("\n".join(parts), encoding="utf-8")
    modules = [name for name in okl.__all__ if inspect.ismodule(getattr(okl, name))]
    for name in modules:
        module = getattr(okl, name)
        names = [n for n in module.__all__ if n not in okl.__all__ and not n.isupper()]
        text = heading(f"okl.{name}", "=") + f"\n{about(module.__name__)}.\n\n"
        (REFERENCE / f"{name}.rst").write_text(text + table(names, module.__name__), "utf-8")
    index = heading("Reference", "=") + "\n.. toctree::\n   :maxdepth: 2\n\n"
    index += "\n".join(f"   {name}" for name in [*pages, *modules])
    (REFERENCE / "index.rst").write_text(index + "\n", encoding="utf-8")


# ---- docstrings have formulas in plain text, with | and * and a_ that mean nothing ----

DOCTEST = re.compile(r"^\s*(>>>|\.\.\. )")


def plain(line: str) -> str:
    """Return a line with what is markup by accident escaped, outside of ``code``."""
    parts = re.split(r"(``.*?``)", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<!\\)\|", r"\\|", parts[i])
        parts[i] = re.sub(r"(?<![\w*\\])\*(?=\w[^*]*\w\*(?!\w))|(?<=\w)\*(?!\w)", "\0", parts[i])
        parts[i] = parts[i].replace("*", r"\*").replace("\0", "*")
    return "".join(parts)


def escape(app, what, name, obj, options, lines) -> None:
    """Escape the prose and the formulas of a docstring, not its examples."""
    code = False
    for i, line in enumerate(lines):
        code = bool(DOCTEST.match(line)) or (code and bool(line.strip()))
        if not code:
            lines[i] = plain(line)


def show_once(app, what, name, obj, options, lines) -> None:
    """Keep what a class says of its attributes out of the index, where the attributes are."""
    for i in reversed(range(len(lines))):
        if lines[i].startswith(".. attribute::"):
            lines.insert(i + 1, "   :no-index:")


def skip(app, what, name, obj, skipped, options) -> bool | None:
    """Leave out the fields of named tuples, of which their classes tell."""
    return True if "Alias for field number" in str(getattr(obj, "__doc__", "")) else None


def setup(app) -> None:
    """Connect the functions above."""
    app.connect("autodoc-process-docstring", escape, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", show_once, priority=900)  # after it
    app.connect("autodoc-skip-member", skip)


write_reference()
autosummary_generate = sorted(map(str, REFERENCE.glob("*.rst")))
