"""Break it on purpose before believing the suite: each planted bug must make its tests fail. Run before releases.

    python -m tests.plant_bugs

Works on a copy of the checkout; prints one line per bug; exits 1 when a bug survives (or no longer applies).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT


class Bug(NamedTuple):
    """Replace `good` by `bad` in `file`; `tests` must then fail."""

    what: str
    file: str
    good: str
    bad: str
    tests: str


CRASH, ENGINE, GOLDEN = "tests/crash/test_crash_anywhere.py", "tests/test_engine.py", "tests/test_golden.py"
BUGS = [
    Bug("a snapshot's content is not synced", "stream_engine/store.py", "            disk.fsync(temporary)\n", "", CRASH),
    Bug("a snapshot's name is not synced", "stream_engine/store.py", "        disk.fsync_dir(path.parent)\n", "", CRASH),
    Bug("a new folder's name is not synced", "stream_engine/store.py", "            disk.fsync_dir(new.parent)\n", "", CRASH),
    Bug("pruning keeps one too few", "stream_engine/store.py", "if whole >= keep:", "if whole >= keep - 1:", CRASH),
    Bug("a damaged snapshot is not told from a whole one", "stream_engine/container.py",
        "if digest.digest() != view[-_DIGEST:]:", "if False:", "tests/test_container.py"),
    Bug("a newer version is passed over like damage", "stream_engine/store.py",
        "            except NewerVersion:\n                raise\n", "", "tests/test_bad_input.py -k newer"),
    Bug("positions are forgotten on restore", "stream_engine/engine.py",
        "        engine.positions = dict(snapshot.positions)\n", "", CRASH),
    Bug("the dead letters' position is forgotten", "stream_engine/engine.py",
        'engine.sinks = engine.counters.pop("sinks", {})', 'engine.counters.pop("sinks", {})', CRASH),
    Bug("a snapshot changes with the engine", "stream_engine/snapshot.py",
        'np.array(array, order="C") for', "array.view() for", ENGINE),
    Bug("merging forgets to unite names", "stream_engine/engine.py",
        "theirs.renamed(theirs.state(), new_id)", "theirs.state()", ENGINE),
    Bug("merging lets the same partition count twice", "stream_engine/engine.py",
        "both = sorted(self.positions.keys() & other.positions.keys())", "both = []", ENGINE),
    Bug("ids are not given by first appearance", "stream_engine/objects.py",
        "ids = [id_of.setdefault(name, len(id_of)) for name in names]",
        "ids = [id_of.setdefault(name, len(id_of)) for name in sorted(names)]", ENGINE),
    Bug("the last label does not win", "stream_engine/labels.py", "known[name] = label", "known.setdefault(name, label)", GOLDEN),
    Bug("AddS exports lose the lower triangle", "stream_engine/exports/similarities.py",
        'w[state["i"], state["j"]] = w[state["j"], state["i"]] = state["w"]', 'w[state["i"], state["j"]] = state["w"]',
        "tests/laws/test_exports.py"),
    Bug("unique triplets count keys instead of directions", "stream_engine/exports/summary.py",
        "np.count_nonzero(columns.n_lo) + np.count_nonzero(columns.n_hi)", "len(columns.anchor)", "tests/laws/test_exports.py"),
    Bug("secrets are shown", "stream_engine/settings.py", "return HIDDEN\n", "return value\n", "tests/test_settings.py"),
    Bug("the file has precedence over the command line", "stream_engine/settings.py",
        "        if value is not None:\n            _put", "        if value is not None and not path:\n            _put", "tests/test_settings.py"),
]


def survives(bug: Bug, folder: Path) -> str:
    """Why the bug was not caught, or ""."""
    path = folder / bug.file
    text = path.read_text()
    if text.count(bug.good) != 1:
        return f"applies {text.count(bug.good)} times"
    path.write_text(text.replace(bug.good, bug.bad))
    try:
        command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider {bug.tests}"
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
        return "" if done.returncode == 1 else f"tests ended with {done.returncode}: {done.stdout.strip().splitlines()[-1:]}"
    finally:
        path.write_text(text)


def main() -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "demo"))
        for bug in BUGS:
            why = survives(bug, copy)
            wrong += bool(why)
            print(f"{'SURVIVED' if why else 'caught  '}  {bug.what}" + (f"  ({why})" if why else ""), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
