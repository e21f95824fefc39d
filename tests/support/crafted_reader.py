"""A process that opens crafted files as every verb does, one after the other, and says of each how it went.

    python -m tests.support.crafted_reader FOLDER

FOLDER holds `index.json` (a list of [file, kind, what is wrong]; kind "snapshot" or that of an artifact), the files,
and `good.snapshot`, which must serve where a file is refused. A line of JSON a file, begun with what is about to be
opened: where the process dies, its last line names the file. What is accepted must be a state: it goes on, is written,
read and restored again to the same bytes, is merged, exported in both orders, asked and refitted from.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from stream_engine import asking, exports
from stream_engine.asking import CannotAsk
from stream_engine.asking.knowledge import knowledge_of
from stream_engine.commands.by_name import by_name
from stream_engine.counts.adds_similarity import _add_dense
from stream_engine.data import container
from stream_engine.data.compiled import read_only
from stream_engine.data.container import Corrupt
from stream_engine.embedding.online_predictor import Online
from stream_engine.evaluation import PREDICTORS, predictor
from stream_engine.exports import NothingToExport
from stream_engine.refits import REFITS, CannotRefit, refit_module
from stream_engine.report.findings import findings
from stream_engine.report.findings.facts import Facts
from stream_engine.state import snapshot as snapshots
from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store
from tests.support import crafted_worlds as worlds
from tests.support.generators import as_batch

REFUSALS = (Corrupt, NothingToExport, CannotAsk, CannotRefit, OverlappingStates)
LONGEST = 700  # characters of a line
GOOD, CRAFTED = 1, 2
OF_ARTIFACTS = ("clusters", "booster", "kernel", "evidence", "workers")
EVERY = int(os.environ.get("CRAFTED_READ_EVERY", "8"))  # of the snapshots that are accepted one is read by everything

WHAT = tuple(exports.all_exports())


class Wrong(Exception):
    """A file that did harm."""


def one_line(told: list[str]) -> None:
    if any("\n" in line or len(line) > LONGEST for line in told):
        raise Wrong(f"told in more than one line: {told}")


class State:
    """A state directory with a good snapshot, beside which crafted files are put."""

    def __init__(self, folder: Path, good: bytes):
        self.folder, self.told = folder, list[str]()
        self.store = Store(folder, tell=self.told.append)
        for sequence, data in ((GOOD, good), (CRAFTED, b"")):
            path = self.store.snapshot_path(sequence)
            path.parent.mkdir(parents=True, exist_ok=True)
            if data:
                path.write_bytes(data)
        self.good = self.store.read(GOOD)
        self._accepted = 0

    def snapshot(self, data: bytes) -> bool:
        """Whether a crafted newest snapshot is accepted; where not, the one before it serves."""
        path = self.store.snapshot_path(CRAFTED)
        path.write_bytes(data)
        engines: list[Engine] = []

        def restore(snapshot: Snapshot) -> None:
            if snapshot.sequence == CRAFTED:  # that the good one can be restored is known
                engines.append(Engine.restore(snapshot))

        latest = self.store.latest(restore)
        one_line(latest.damaged)
        if latest.snapshot is None or (latest.snapshot.sequence == CRAFTED) == bool(latest.damaged):
            raise Wrong(f"served {latest.snapshot and latest.snapshot.sequence} after {latest.damaged}")
        if latest.damaged:
            return False
        goes_on(engines[-1])
        self._accepted += 1
        if self._accepted % EVERY == 0:
            self._read(Published(latest.snapshot, {}))
        return True

    def _read(self, published: Published, names=WHAT) -> None:
        """What readers make of it, in the order of arrival and by name."""
        for name in names:
            for ordered in (lambda: published, lambda: by_name(published)):
                allowed(lambda name=name, ordered=ordered: exports.contents(name, ordered()))
        if "triplet_counts" in published.snapshot.settings["accumulators"]:
            known = knowledge_of(published.snapshot, published.artifacts.get("embedding"))
            allowed(lambda: asking.questions(known, 3, "uncertainty", 0))

    def artifact(self, kind: str, data: bytes) -> bool:
        """Whether a crafted artifact of the good snapshot is accepted."""
        path = self.store.artifact_path(kind, GOOD)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.told.clear()
        self.store = Store(self.folder, tell=self.told.append)
        published = self.store.with_artifacts(self.good)
        one_line(self.told)
        path.unlink()
        if kind not in published.artifacts:
            if not self.told:
                raise Wrong("passed over, and not told")
            return False
        self._read(published, OF_ARTIFACTS)
        facts = Facts(published)
        facts.models = []  # what counts alone predict is dear, and does not depend on artifacts
        findings(facts)
        _predict(published, kind)
        self._accepted += 1
        if kind in REFITS and self._accepted % EVERY == 0:
            again(self.good, kind, published)
        return True


def allowed(read: Callable[[], object]) -> None:
    """What is not there, or cannot be, is said so."""
    with contextlib.suppress(*REFUSALS):
        read()


def goes_on(engine: Engine) -> None:
    """It learns, and what it then is can be written, read and restored to the same bytes; it can be merged."""
    worlds.learned(engine, 1)
    data = worlds.as_bytes(engine.snapshot())
    again = Engine.restore(snapshots.decode(data))
    again.sequence -= 1
    if worlds.as_bytes(again.snapshot()) != data:
        raise Wrong("restored from what it wrote, it is another")
    other = Engine(tuple(engine.accumulators), engine.guard is not None, engine.forgetting)
    worlds.learned(other, 2, "t/elsewhere")
    with contextlib.suppress(OverlappingStates):
        engine.merge(other)
        snapshots.decode(worlds.as_bytes(engine.snapshot()))


def _predict(published: Published, kind: str) -> None:
    rows = np.array([[0, 1, 0, 2], [3, 4, 5, 6], [7, 8, 7, 50]], np.int32)
    if kind in PREDICTORS:
        made = predictor(kind, published)
        if made is not None:
            made.margins(rows)
    if kind == "online_embedding":
        online = Online(3)
        online.resume(published.artifacts[kind])
        online.predictor().margins(rows)
        online.learn([as_batch(rows[:, [0, 1, 3]][:2], 8)])


def again(snapshot: Snapshot, kind: str, published: Published) -> None:
    """The refit goes on from the artifact."""
    module = refit_module(kind)
    params = msgspec.convert(worlds.QUICK.get(kind, {}), module.Params)
    allowed(lambda: module.refit(snapshot, params, 0, published.artifacts[kind]))


def unchecked(data: bytes) -> bool:
    """What a file did before anybody looked into it: its arrays go straight into compiled code. In tests that checks
    its bounds (tests/conftest.py); without the checks the process dies of it. It is here to see that harm is seen."""
    _, _, arrays, _ = container.decode(data)
    weights = np.zeros((4, 4), np.int64)
    rows = np.stack([arrays["adds3/i"], arrays["adds3/j"], arrays["adds3/j"]], axis=1)
    _add_dense(weights, read_only(rows * 1000, np.int32))
    return True


def main(folder: Path) -> None:
    work = Path(tempfile.mkdtemp(dir=folder))
    state = State(work, (folder / "good.snapshot").read_bytes())
    for name, kind, what in json.loads((folder / "index.json").read_text()):
        print(json.dumps({"file": name, "kind": kind, "what": what}), flush=True)
        data = (folder / name).read_bytes()
        if kind == "die":
            signal.raise_signal(signal.SIGSEGV)
        try:
            if kind == "unchecked":
                accepted = unchecked(data)
            else:
                accepted = state.snapshot(data) if kind == "snapshot" else state.artifact(kind, data)
            print(json.dumps({"accepted": accepted}), flush=True)
        except Exception as error:
            where = traceback.format_exc()[-1500:] if not isinstance(error, Wrong) else ""
            print(json.dumps({"wrong": f"{type(error).__name__}: {error}"[:500], "where": where}), flush=True)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
