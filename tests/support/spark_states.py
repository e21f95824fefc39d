"""A state over deltas beside that of one process over the same events."""

from pathlib import Path

from tests.support.process import engine, summary

EXACT = ("objects", "adds3", "adds4", "triplet_counts", "k1", "k2")


def check(out: Path, state: Path, folder: Path) -> None:
    """The engine over these deltas equals the one process."""
    mine = folder / "through-spark"
    engine("run", f"deltas://{out}", "--state", mine, "--no-refits", "--max-reject-ratio", "1", "--guard", "off")
    left, right = summary(mine), summary(state)
    assert left["comparisons"] > 400 and sum(left["rejected"].values()) > 100
    drop = ("positions", "snapshot", "progressive", "repeated")  # predictions go by the snapshots; jobs see no repeats
    assert {k: v for k, v in left.items() if k not in drop} == {k: v for k, v in right.items() if k not in drop}
    for each, name in ((mine, "a"), (state, "b")):
        engine("export", "--state", each, "--out", folder / name, "--object-order", "name", *EXACT)
    for file in (folder / "b").iterdir():
        assert (folder / "a" / file.name).read_bytes() == file.read_bytes(), file.name
    assert sorted(lines(mine)) == sorted(lines(state))


def lines(state: Path) -> list[str]:
    return [line for file in sorted((state / "dead_letters").iterdir()) for line in file.read_text().splitlines()]
