"""The manual as a site to read without network: `make docs`. Its pages are Markdown; this says how they are shown.

Each is there as Markdown too, beside its page; `llms.txt` lists them. The sidebar has the sections and links of the
index; formulas, which the Markdown has as text, are shown as MathML (`formulas.toml`)."""

import re
import shutil
import tomllib
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

HERE = Path(__file__).parent
project = "stream-engine"
author = "The stream-engine authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "stream_engine/docs/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "stream_engine/DESIGN.md",
    "stream_engine/docs/**",
    "deploy/manual/pages.md",
]
exclude_patterns = [".*", "build", "demo", "state", "out", "tests", "connectors"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"  # shown by browsers without a script from the network
suppress_warnings = ["myst.header", "toc.not_included", "misc.highlighting_failure"]  # some pages are reached by links
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["manual.css"]
html_theme = "pydata_sphinx_theme"
html_title = "stream-engine"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "navbar_center": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"**": ["contents.html"], "search": []}
html_show_sourcelink = True

PICTURES = "../../deploy/manual/pages"  # seen from the index; their pictures are not in the wheel
FORMULAS = tomllib.loads((HERE / "formulas.toml").read_text(encoding="utf-8"))["formula"]


def with_formulas(text: str) -> str:
    """A page with the formulas of `formulas.toml` as MathML in place of their text."""
    for formula in FORMULAS:
        lines = re.split(r"\n\\\\ ", formula["tex"].strip())
        shown = "\n".join(tex2mathml(line, as_block=True) for line in lines)
        made = f'```{{raw}} html\n<div class="formula">\n{shown}\n</div>\n```'
        text = text.replace(f"```text\n{formula['text']}```", made)
    return text


def contents(index: str) -> str:
    """The sidebar: a list of pages for each section of the index that links to some."""
    lists, listed = [], set()
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        links = [link for link in re.findall(r"\]\(([^):#]+)\.(?:md)(?:#[^)]*)?\)", body) if link not in listed]
        links += [PICTURES] if heading == "Gallery" else []
        listed.update(links)
        if links:
            entries = "\n".join(dict.fromkeys(links))
            lists.append(f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {heading}\n\n{entries}\n```")
    return "\n\n".join(lists)


def _read(app, docname, source):
    source[0] = with_formulas(source[0])
    if docname == root_doc:
        source[0] += "\n" + contents(source[0])


def setup(app):
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))
    app.connect("source-read", _read)
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
