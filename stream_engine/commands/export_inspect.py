"""Published state for people and scripts: `export` and `inspect`. Takes no lock; readers never disturb a run."""

import os
from pathlib import Path
from typing import Any

from stream_engine import exports
from stream_engine.exports import files
from stream_engine.exports.by_name import by_name
from stream_engine.exports.summary import summary_of
from stream_engine.service.settings import BadSettings
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store


def chosen(store: Store, which: str) -> Snapshot:
    """Snapshot `which` ("latest" or a number). Raises BadSettings, NoSuchSnapshot, Corrupt."""
    if which != "latest":
        if not which.isdigit():
            raise BadSettings(f"--snapshot: got {which!r}, expected a number or latest")
        return store.read(int(which))
    latest = store.latest().snapshot
    if latest is None:
        raise NoSuchSnapshot(f"{store.directory}: no snapshot there; `stream-engine run SOURCE --state DIR` makes one")
    return latest


def published(store: Store, which: str = "latest") -> exports.Published:
    """A snapshot with the artifacts made from it, or else the newest ones made before it."""
    snapshot = chosen(store, which)
    found = {}
    for kind in store.kinds():
        known = [n for n in store.artifact_sequences(kind) if n <= snapshot.sequence]
        if known:
            found[kind] = store.artifact(kind, known[-1])
    return exports.Published(snapshot, found)


def export(
    state: str, out: str, which: str, format: str, what: tuple[str, ...], object_order: str = "seen"
) -> list[Path]:
    """Write the files of the contract below `out`; all of them, or those named. Returns their paths.

    `object_order`: "seen" numbers objects as they first appeared, "name" as their names sort.

    What is named and not there is an error; what is not named and not there is left out.
    """
    unknown = [name for name in what if name not in exports.EXPORTS]
    if unknown:
        raise BadSettings(f"export: got {', '.join(unknown)}, expected any of {', '.join(exports.EXPORTS)}")
    files_of = published(Store(state), which)
    if object_order == "name":
        files_of = by_name(files_of)
    Path(out).mkdir(parents=True, exist_ok=True)
    paths = []
    for name in what or [name for name in exports.EXPORTS if name not in exports.ON_REQUEST]:
        try:
            made = exports.contents(name, files_of)
        except exports.NothingToExport:
            if what:
                raise
            continue
        for stem, content in made.items():
            for file, data in files.encode(stem, content, format, files_of.snapshot.objects).items():
                paths.append(_written(Path(out) / file, data))
    return paths


def _written(path: Path, data: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
    return path


def inspect(state: str) -> dict[str, Any]:
    """What is in the state: the summary, the kept snapshots, the artifacts with their reports, how predictions went."""
    store = Store(state)
    files_of = published(store)
    return {
        "state": str(store.directory),
        "snapshots": store.sequences(),
        "digest": files_of.snapshot.digest,
        "settings": files_of.snapshot.settings,
        "artifacts": {
            kind: {"snapshot": a.sequence, "seed": a.seed, "params": a.params, "report": a.report}
            for kind, a in files_of.artifacts.items()
        },
        "progressive": store.noted("progressive"),
        "summary": summary_of(files_of.snapshot),
    }


def as_text(found: dict[str, Any]) -> str:
    """`inspect` for people: one fact a line."""
    lines = [f"state       {found['state']}", f"snapshots   {', '.join(map(str, found['snapshots']))}"]
    for key, value in found["summary"].items():
        lines.append(f"{key:24}{_short(value)}")
    for kind, artifact in found["artifacts"].items():
        lines.append(f"{kind} (snapshot {artifact['snapshot']})")
        lines += [f"  {key:22}{_short(value)}" for key, value in artifact["report"].items()]
    return "\n".join(lines + _predictions(found.get("progressive", {})))


def _predictions(said: dict[str, Any]) -> list[str]:
    """A line for each predictor and kind of judgement: before learning, in total and recently."""
    if not said:
        return []
    lines = [
        f"predictions before learning (until snapshot {said['snapshot']}; {said['sampled']:,} of {said['seen']:,} drawn)",
        f"  {'predictor':24}{'kind':14}{'tested':>10}{'accuracy':>10}{'recently':>10}{'log loss':>10}{'calibration error':>19}",
    ]
    for name, kinds in said["predictors"].items():
        for kind, windows in kinds.items():
            if kind == "all" or len(kinds) > 2:
                total, recent = windows["total"], windows["rolling"]
                lines.append(
                    f"  {name:24}{kind:14}{total['tested']:10,}{total['accuracy']:10.3f}{recent['accuracy']:10.3f}"
                    f"{recent['log_loss']:10.3f}{recent['calibration_error']:19.3f}"
                )
    alarms = ", ".join(f"{signal} {each['alarms']}" for signal, each in said["drift"].items())
    return [*lines, *([f"  alarms of change: {alarms}"] if alarms else [])]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{k}={_short(v)}" for k, v in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(_short, value[:8])) + (" …" if len(value) > 8 else "") or "-"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
