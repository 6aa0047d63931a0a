"""How Sphinx builds the site: ``sphinx-build -W docs site``; the reference is made of docstrings."""

import inspect
import re
import sys
from pathlib import Path

import oklnumba as okl
from oklnumba import catalogue

HERE = Path(__file__).resolve().parent

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
html_show_sphinx = html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say types and shapes
autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "bysource"}
napoleon_google_docstring = False
napoleon_use_rtype = napoleon_use_ivar = False
napoleon_custom_sections = [("Remarks", "notes_style")]
