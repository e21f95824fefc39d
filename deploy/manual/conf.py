"""The manual as a site to read without network: `make docs`. Its pages are Markdown; this says how they are shown.

Each is there as Markdown too, beside its page; `llms.txt` lists them."""

import shutil
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

project = "stream-engine"
author = "The stream-engine authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "stream_engine/docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "SECURITY.md", "stream_engine/DESIGN.md", "stream_engine/docs/**"]
exclude_patterns = [".*", "build", "demo", "state", "out", "tests", "connectors", "deploy"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"  # shown by browsers without a script from the network
suppress_warnings = ["myst.header", "toc.not_included", "misc.highlighting_failure"]  # pages are reached by links
html_theme = "pydata_sphinx_theme"
html_title = "stream-engine"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"]}
html_sidebars = {"**": []}
html_show_sourcelink = True


def setup(app):
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))
    app.connect("build-finished", _markdown_too)


def _inline_formula(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def _formula(translator, node):
    translator.body.append(f'<div style="margin: 1em 0">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def _markdown_too(app, failed):
    docs = Path(app.srcdir) / "stream_engine" / "docs"
    for page in [*docs.rglob("*.md"), docs / "llms.txt"]:
        if not failed:
            shutil.copy(page, Path(app.outdir) / page.relative_to(app.srcdir))
