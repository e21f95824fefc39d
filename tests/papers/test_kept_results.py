"""What is kept of the papers is of the present code: a part of `make check`."""

import json
from importlib import import_module

import numpy as np
import pytest

from tests.benchmarks.papers import PAPERS, command, digests
from tests.benchmarks.papers.kept import Kept


@pytest.mark.parametrize("name", PAPERS)
def test_no_kept_result_is_of_other_code(name):
    module = import_module(PAPERS[name])
    kept = Kept(command.HERE / f"{name}.jsonl", module.RESTS_ON, make=False)
    module.paper(kept)
    assert not kept.stale, (
        f"{len(kept.stale)} results of {name} rest on code that has changed since, such as {kept.stale[0]}; next: "
        f"python -m tests.benchmarks papers --only {name} --out FOLDER makes them again"
    )
    unasked = set(kept.cells) - kept.asked
    assert not unasked, f"{len(unasked)} results of {name} are of experiments that are no more: {min(unasked)}"


def test_a_changed_statement_makes_a_result_stale_and_prose_does_not(tmp_path, monkeypatch):
    made = []

    def make(key):
        made.append(key)
        return {"twice": 2 * key["size"]}

    file, key = tmp_path / "kept.jsonl", {"experiment": "one", "size": 4}
    rests_on = {"one": (np.linalg,)}

    def kept(**more):
        return Kept(file, rests_on, tell=lambda text: None, **more)

    assert kept().cell(key, make).found == {"twice": 8} and kept().cell(key, make).found == {"twice": 8}
    assert len(made) == 1
    whole, source = digests.dump, digests._dump.__wrapped__
    monkeypatch.setattr(digests, "_dump", source)  # without its cache
    monkeypatch.setattr(digests, "dump", lambda text: whole('"Other prose."\nimport os\n' + text))
    assert kept(make=False).cell(key, make) is not None
    monkeypatch.setattr(digests, "dump", lambda text: whole(text + "\nmore = 1"))
    without = kept(make=False)
    assert without.cell(key, make) is None
    assert without.stale == [key]
    assert not without.missing
    again = kept()
    assert again.cell(key, make).found == {"twice": 8} and len(made) == 2
    assert len(file.read_text().splitlines()) == 1 and json.loads(file.read_text())["made"]["code"]
    assert kept(make=False).cell({"experiment": "one", "size": 5}, make) is None
