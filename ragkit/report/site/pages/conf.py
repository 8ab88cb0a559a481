"""Sphinx's settings of the site; `ragkit.report.site` writes the sources."""

from pathlib import Path

import mathjax

from ragkit import __version__

project, author, release = "ragkit", "The ragkit authors", __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
smartquotes = False  # a command has two dashes
suppress_warnings = [
    "mystnb.unknown_mime_type",
    "myst.header",
    "design.card_legacy",
    "misc.highlighting_failure",
]

# Notebooks are shown as they were executed.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# MathJax comes from a Python package and lies in the site.
html_static_path = [
    str(Path(__file__).with_name("static")),
    str(Path(mathjax.__file__).parent / "static/mathjax/es5/tex-svg.js"),
]
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "ragkit"
html_css_files, html_js_files = ["site.css"], ["site.js"]
html_copy_source = html_show_sourcelink = False
html_show_copyright = False
html_context = {"default_mode": "auto"}
html_sidebars = {
    page: [] for page in ("index", "scoreboard", "experiments", "architecture", "gallery")
}
html_theme_options = {
    "logo": {"text": "ragkit"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": ["sphinx-version"],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
