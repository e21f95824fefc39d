"""The readme as an index page shows it; everything else is in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def index_readme(text: str, repository: str = "") -> str:
    """A readme that can be read outside of the repository: relative links lead to the repository's page, or are plain
    text if it has none; pictures are left out then."""

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if not repository:
            return "" if picture else words
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/HEAD/{target})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    here = Path(__file__).parent
    urls = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    readme = index_readme((here / "README.md").read_text(encoding="utf-8"), urls.get("Repository", ""))
    setup(long_description=readme, long_description_content_type="text/markdown")
