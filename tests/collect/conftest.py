"""Studies that really run, each ended when its test is over."""

import pytest

from tests.report.conftest import browser, pytest_collection_modifyitems, pytest_runtest_makereport, watched  # noqa: F401
from tests.support.collecting import Collecting

WORDS = ["apple", "pear", "plum", "car", "bus", "train", "cat", "dog", "cow", "rose", "tulip", "oak"]


@pytest.fixture
def names(tmp_path):
    """A file of names."""
    path = tmp_path / "names.txt"
    path.write_text("\n".join(WORDS) + "\n")
    return path


@pytest.fixture
def collecting(tmp_path, names):
    """`collecting(study="...", objects=path)` starts a study."""
    started: list[Collecting] = []

    def start(*more, objects=names, study="", config=""):
        folder = tmp_path / f"study{len(started)}"
        folder.mkdir()
        started.append(Collecting(folder, objects, *more, study=study, config=config))
        return started[-1]

    yield start
    for each in started:
        each.kill()
