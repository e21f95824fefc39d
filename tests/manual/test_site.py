"""The manual is built to a site without a warning, and the site asks nothing of the network."""

import re
import subprocess
import sys

from deploy.manual import DOCS
from tests.conftest import ROOT
from tests.support.process import ENVIRONMENT

FETCHED = re.compile(r'<(?:script|link|img|iframe|source|object)[^>]*(?:src|href|data)="((?:https?:)?//[^"]*)"')
STYLED = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')]*)""")


def test_it_is_built_without_a_warning_and_is_read_without_network(tmp_path):
    arguments = ["-q", "-W", "--keep-going", "-c", str(ROOT / "deploy" / "manual"), str(ROOT), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    built = {
        path.relative_to(tmp_path / "stream_engine" / "docs").with_suffix("")
        for path in tmp_path.rglob("*.html")
        if (tmp_path / "stream_engine" / "docs") in path.parents
    }
    assert {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")} <= built
    for page in tmp_path.rglob("*.html"):
        assert not FETCHED.findall(page.read_text(encoding="utf-8")), page
    for sheet in tmp_path.rglob("*.css"):
        assert not STYLED.findall(sheet.read_text(encoding="utf-8")), sheet


def test_what_would_be_fetched_is_found():
    assert FETCHED.findall('<script defer src="https://cdn.example/a.js">') == ["https://cdn.example/a.js"]
    assert FETCHED.findall('<a href="https://example.org">, <img src="_images/a.svg">') == []
    assert STYLED.findall("@import '//fonts.example/a.css'; x { y: url(https://a.example/f.woff2) }") == [
        "//fonts.example/a.css",
        "https://a.example/f.woff2",
    ]
    assert STYLED.findall("x { y: url(../f.woff2); z: url(data:font/woff2;base64,AA//BB) }") == []
