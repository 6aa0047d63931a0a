"""Settings of Sphinx for ``sphinx-build -W docs site``; the reference is made of docstrings."""

import importlib
import inspect
import re
import shutil
from pathlib import Path

from sphinx.ext import autosummary

import oklnumba as okl

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "reference"  # every build writes it again

project = "oklnumba"
author = "the authors of oklnumba"
version = release = okl.__version__

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
extensions = ["myst_parser", "sphinx_copybutton"]
extensions += [f"sphinx.ext.{name}" for name in ("autodoc", "autosummary", "napoleon")]
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. ", True
templates_path = ["_templates"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
html_theme = "furo"
html_static_path, html_css_files = ["_static"], ["wide.css"]
html_title = f"oklnumba {okl.__version__}"
html_show_sphinx = html_show_copyright = html_copy_source = False
pygments_style = "friendly"

autodoc_typehints = "none"  # docstrings have types and shapes
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = napoleon_use_param = napoleon_use_ivar = False
smartquotes = False
napoleon_custom_sections = [("Remarks", "notes_style")]


autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "Fig.", "Alg.")  # they end no sentence


# ---- the pages of the reference ----


def summarise_module(module: str) -> str:
    """Return the first sentence of a module's docstring."""
    text = inspect.getdoc(importlib.import_module(module)) or module
    return re.split(r"\.(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def make_table(names: list[str], module: str = "oklnumba") -> str:
    """Return a table of objects, each with a page of its own."""
    lines = [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
    return "\n".join([*lines, *(f"   ~{module}.{name}" for name in names), ""])


def underline(text: str, under: str = "-") -> str:
    """Return an underlined heading."""
    return f"{text}\n{under * len(text)}\n"


def group_names() -> dict[str, list[str]]:
    """Return the names in ``oklnumba`` by module, in the order of docs/algorithms.md."""
    listed = re.findall(r"`(\w+)`", (HERE / "algorithms.md").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for name in sorted(okl.__all__, key=lambda n: listed.index(n) if n in listed else 999):
        value = getattr(okl, name)
        if not inspect.ismodule(value) and getattr(value, "__name__", name) == name:
            found.setdefault(value.__module__, []).append(name)
    returned = "protocol.runs.Certificate", "learners.base.late.Asked"  # by a run, by ask
    found["oklnumba.protocol.runs"] += returned
    return found


def write_reference() -> None:
    """Write a page of all classes by family, and one of each public module."""
    shutil.rmtree(REFERENCE, ignore_errors=True)
    REFERENCE.mkdir()
    groups = group_names()
    pages = {
        "learners": ("Learners", r"oklnumba\.learners\.(?!base)"),
        "parts": ("Kernels, features, dictionaries", r"oklnumba\.components\."),
        "around": ("Runs and experiments", ""),
    }
    for page, (title, pattern) in pages.items():
        modules = [module for module in groups if re.match(pattern, module)]
        parts = [underline(title, "=")]
        if page == "learners":
            names = [name for module in modules for name in groups.pop(module)]
            groups["oklnumba.learners.base.learner"].remove("Learner")
            parts += ["What all of them have:\n", make_table(["Learner"])]
            parts += ["Learners, those of one paper together:\n", make_table(names)]
        else:
            for module in modules:
                parts += [underline(summarise_module(module)), make_table(groups.pop(module))]
        (REFERENCE / f"{page}.rst").write_text("\n".join(parts), encoding="utf-8")
    modules = [name for name in okl.__all__ if inspect.ismodule(getattr(okl, name))]
    for name in modules:
        module = getattr(okl, name)
        names = [n for n in module.__all__ if n not in okl.__all__ and not n.isupper()]
        text = underline(f"okl.{name}", "=") + f"\n{summarise_module(module.__name__)}.\n\n"
        (REFERENCE / f"{name}.rst").write_text(text + make_table(names, module.__name__), "utf-8")
    index = underline("Reference", "=") + "\n.. toctree::\n   :maxdepth: 2\n\n"
    index += "\n".join(f"   {name}" for name in [*pages, *modules])
    (REFERENCE / "index.rst").write_text(index + "\n", encoding="utf-8")


# ---- the pages ----


def copy_figures() -> None:
    """Copy figures/ into docs/, so that its pages are pages of the site; builds copy anew."""
    shutil.rmtree(HERE / "figures", ignore_errors=True)
    shutil.copytree(HERE.parent / "figures", HERE / "figures")


def read_page(app, docname, source) -> None:
    """Mend links from and to the pages of figures, and drop the empty line that ends doctests."""
    if docname.startswith("figures/"):
        source[0] = re.sub(r"\]\(\.\./(?=scripts/|tests/)", "](../../", source[0])
        source[0] = source[0].replace("](../docs/", "](../")
    else:
        source[0] = source[0].replace("](../figures/", "](figures/")
    if docname == "figures/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


# ---- docstrings have formulas in plain text, whose |, * and a_ are no markup ----

DOCTEST = re.compile(r"^\s*(>>>|\.\.\. )")
MARKUP = re.compile(r"(``.*?``|(?<![\w*])\*\w[^*]*\w\*(?![\w*]))")  # code and *emphasis*


def escape_formulas(line: str) -> str:
    """Return a line with a backslash before | and * that are no markup."""
    return escape(r"([|*])", line)


def escape(pattern: str, line: str) -> str:
    """Return a line with a backslash before each match outside code and emphasis."""
    parts = MARKUP.split(line)
    parts[::2] = [re.sub(pattern, r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def find_prose(lines: list[str]) -> list[int]:
    """Return the numbers of the lines of a docstring outside its examples."""
    found, code = [], False
    for i, line in enumerate(lines):
        code = bool(DOCTEST.match(line)) or (code and bool(line.strip()))
        if not code:
            found.append(i)
    return found


def before_napoleon(app, what, name, obj, options, lines) -> None:
    """Escape the formulas of a docstring."""
    for i in find_prose(lines):
        lines[i] = escape_formulas(lines[i])


def after_napoleon(app, what, name, obj, options, lines) -> None:
    """Escape names_ that are no links, and keep attributes out of the index, which has them."""
    for i in reversed(find_prose(lines)):
        if lines[i].startswith(".. attribute::"):
            lines.insert(i + 1, "   :no-index:")
        else:
            lines[i] = escape(r"(?<=[a-zA-Z0-9])(_)(?!\w)", lines[i])


def skip_member(app, what, name, obj, skipped, options) -> bool | None:
    """Leave out fields of named tuples, described by their classes, and scikit-learn's methods."""
    alias = "Alias for field number" in str(getattr(obj, "__doc__", ""))
    return True if alias or re.fullmatch(r"set_\w+_request", name) else None


def begin(app, config) -> None:
    """Write the reference and copy the pages of figures before Sphinx looks for pages."""
    write_reference()
    copy_figures()
    config.autosummary_generate = sorted(map(str, REFERENCE.glob("*.rst")))


def setup(app) -> None:
    """Connect the functions above."""
    app.connect("config-inited", begin)
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", after_napoleon, priority=900)
    app.connect("autodoc-skip-member", skip_member)
