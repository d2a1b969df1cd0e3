"""How the documentation is built: ``make docs``, strictly and offline."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "aboveboard"
author = "The aboveboard developers"
copyright = "2026, The aboveboard developers"
version = release = metadata.version("aboveboard")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "myst_parser",
    "sphinx_design",
    "evidence",
]
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
language = "en"

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_mock_imports = ["torch", "flwr"]  # the documentation is built without it, and shows no methods of its modules
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_partial_fit_request, set_predict_request, set_predict_proba_request, "
    "set_score_request"
}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = True
napoleon_custom_sections = ["Guarantee", "Cost", "Source"]

# In docstrings `name` is code, and a link where it names something of ours.
default_role = "py:obj"
# Names of other libraries stay unlinked: linking them would fetch their inventories, and the build is offline.
nitpick_ignore_regex = [(r"py:.*", r"(?!aboveboard\.).*")]
# "max-|t|" is the name of a statistic, not a substitution.
rst_prolog = ".. |t| replace:: \\|t\\|\n"

html_theme = "pydata_sphinx_theme"
html_title = "aboveboard"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    page: [] for page in ("quickstart", "report", "data", "cli", "ci", "integrations", "erasure", "evidence")
}
html_theme_options = {
    "logo": {"text": "aboveboard"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
