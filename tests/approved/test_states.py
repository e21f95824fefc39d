"""What the state of a world holds, for programs: `inspect --json`, `summary.json`, and the first rows of every file."""

import contextlib
import csv
import json
from itertools import islice

import pytest

from stream_engine.commands.inspect import inspect
from stream_engine.exports import NothingToExport, table_rows
from tests.support import told
from tests.support.approved import number, outline, unchanging
from tests.support.process import engine
from tests.support.told import HOWS

SECONDS = {"cpu_seconds", "seconds"}
HOW = {"digest", "params", "settings", "tried"}  # how it was fitted


def without_days(document):
    """A document without what it cost, and how it was fitted."""
    if isinstance(document, dict):
        return {key: "…" if key in SECONDS else without_days(each) for key, each in document.items() if key not in HOW}
    return [without_days(each) for each in document] if isinstance(document, list) else document


@pytest.mark.parametrize("name", ["people", "odd", "halves", "forgetting"])
def test_inspect(name, world, approved):
    with contextlib.chdir(world(name)[0]):
        found = json.loads(json.dumps(inspect("state")))
    texts = {topic: [finding["what"] for finding in found] for topic, found in found.pop("findings").items()}
    assert unchanging("\n".join(outline(without_days(found | {"findings": texts})))) == approved


EXPORTED = {  # of a world, what no other has
    "people": "objects summary partial_order workers participants clusters hierarchy embedding models",
    "people, by name": "--object-order name objects clusters evidence models hierarchy spectral",
    "odd": "objects clusters dimensions classify predictions booster k1",
    "growing": "objects summary adds3 adds4 triplet_counts k1 k2 judgements questions spectral evidence booster",
    "forgetting": " ".join(f"{of}{how}" for of in ("adds3", "triplet_counts") for how in HOWS if how),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_export(name, world, approved, tmp_path):
    folder = world(name.partition(",")[0])[0]
    given = ("export", "--state", folder / "state", "--out", tmp_path, "--format", "csv")
    done = engine(*given, *EXPORTED[name].split(), status=None, cwd=folder)
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    for path in sorted(tmp_path.iterdir()):
        lines += ["", f"## {path.name}", *beginning(path)]
    assert unchanging("\n".join(lines).replace(str(tmp_path), "OUT")) == approved


def test_rows(approved):
    """Rows of tables as they are published, by their first column."""
    lines, state = [], told.studied()
    for table in ("objects", "models", "workers", "clusters", "cluster_answer", "participants", "questions", "kernel"):
        try:
            found = table_rows.rows(state, table)
        except (NothingToExport, table_rows.NoSuchTable) as error:
            lines += [f"## {table}", f"!! {error}"]
            continue
        lines.append(f"## {table}: {len(found)}")
        for key, text in [*found.items()][:2]:
            lines.append(
                f"{key.decode()}: {', '.join(f'{name} {number(each)}' for name, each in json.loads(text).items())}"
            )
    assert "\n".join(lines) == approved


def beginning(path, rows=1):
    """The first rows of a table, the last one, and how many there are; the outline of a document."""
    if path.suffix == ".json":
        return islice(outline(without_days(json.loads(path.read_text()))), 40)
    with path.open(newline="") as file:
        cells = list(csv.reader(file))
    cost = [at for at, head in enumerate(cells[0]) if head in SECONDS]
    table = [" | ".join("…" if at in cost else short(cell) for at, cell in enumerate(row)) for row in cells]
    return [*table[: rows + 1], *([f"... {len(table) - 1} rows ...", table[-1]] if len(table) > rows + 1 else [])]


def short(cell: str) -> str:
    """A number in few digits."""
    with contextlib.suppress(ValueError):
        return cell if cell.lstrip("-").isdigit() else number(float(cell))
    return cell
