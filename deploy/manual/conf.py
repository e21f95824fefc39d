"""The manual as a site to read without network: `make docs`. Its pages are Markdown; this says how they are shown."""

project = "stream-engine"
author = "The stream-engine authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "stream_engine/docs/index"
include_patterns = ["README.md", "stream_engine/DESIGN.md", "stream_engine/docs/**"]
exclude_patterns = [".*", "build", "demo", "state", "out", "tests", "connectors", "deploy"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
suppress_warnings = ["myst.header", "toc.not_included", "misc.highlighting_failure"]  # pages are reached by links
html_theme = "pydata_sphinx_theme"
html_title = "stream-engine"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"]}
html_sidebars = {"**": []}
html_show_sourcelink = True
