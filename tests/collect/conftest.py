"""Studies that really run, each ended when its test is over."""

import pytest
from PIL import Image

from tests.report.conftest import browser, pytest_collection_modifyitems, pytest_runtest_makereport, watched  # noqa: F401
from tests.support.collecting import ENGINE, Collecting

NO_REFITS = "[snapshot]\ninterval = 1.0\n[refits]\nkinds = []\n"
SIZES = [(300, 200), (200, 300), (400, 200), (250, 250), (120, 240), (640, 480)]
WORDS = ["apple", "pear", "plum", "car", "bus", "train", "cat", "dog", "cow", "rose", "tulip", "oak"]


@pytest.fixture
def names(tmp_path):
    """A file of names."""
    path = tmp_path / "names.txt"
    path.write_text("\n".join(WORDS) + "\n")
    return path


@pytest.fixture
def pictures(tmp_path):
    """A folder of six pictures of as many sizes."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for n, size in enumerate(SIZES):
        Image.new("RGB", size, (40 * n, 255 - 40 * n, 128)).save(folder / f"secret{n}.png")
    return folder


@pytest.fixture
def collecting(tmp_path, names):
    """`collecting(study="...", objects=path)` starts a study, without refits unless `config` says otherwise; without
    the engine and the maker of questions with `program=ALONE`."""
    started: list[Collecting] = []

    def start(*more, objects=names, study="", config=NO_REFITS, program=ENGINE):
        folder = tmp_path / f"study{len(started)}"
        folder.mkdir()
        started.append(Collecting(folder, objects, *more, study=study, config=config, program=program))
        return started[-1]

    yield start
    for each in started:
        each.kill()
