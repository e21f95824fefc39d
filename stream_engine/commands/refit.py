"""One refit of a published snapshot: the verb `refit`, and what refit workers run."""

import copy
import json
import os
import select
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from threadpoolctl import threadpool_limits

from stream_engine.commands import export_inspect
from stream_engine.refits import CannotRefit, refit_module
from stream_engine.service.progress_bars import Bars
from stream_engine.service.settings import BadSettings, put, refit_params, toml_value
from stream_engine.state.artifact import Artifact
from stream_engine.state.store import Store


def assigned(assignments: Iterable[str], given: dict[str, Any] | None = None) -> dict[str, Any]:
    """`["k=3", "solver=cvxpy"]` as parameters, over those `given`; values are TOML where they are TOML, else text.

    >>> assigned(["k=3", "kernels.taste.file=taste.csv"])
    {'k': 3, 'kernels': {'taste': {'file': 'taste.csv'}}}
    """
    given = copy.deepcopy(given or {})
    for text in assignments:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise BadSettings(f"--set: got {text!r}, expected KEY=VALUE")
        put(given, tuple(key.strip().split(".")), toml_value(value.strip()))
    return given


def names_in(path: str) -> list[str]:
    """The names of objects in a file, one a line; for `--objects FILE`. Raises `BadSettings`."""
    try:
        names = [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"--objects: {path}: {getattr(error, 'strerror', None) or error}") from None
    if not names:
        raise BadSettings(f"--objects: {path}: got no names, expected one a line")
    return names


def refit(state: str, kind: str, which: str, params: dict[str, Any], seed: int, shown: str = "none") -> Artifact:
    """Make an artifact and publish it; `shown`: "bar", "json" (lines on standard output) or "none"."""
    checked = refit_params(kind, params)
    if shown == "json":
        threading.Thread(target=_end_with_the_reader, daemon=True).start()
    store = Store(state)
    snapshot = export_inspect.chosen(store, which)
    previous = store.latest_artifact(kind)
    with Bars() as bars, threadpool_limits(1):
        try:
            made = refit_module(kind).refit(snapshot, checked, seed, previous, _teller(shown, kind, bars))
        except CannotRefit:
            if shown == "json":
                print(json.dumps({"impossible": True}), flush=True)
            raise
    return store.publish_artifact(made)


def _end_with_the_reader() -> None:
    """End this process when nobody is left to read its standard output, which is a pipe: the engine was killed."""
    asked = select.poll()
    asked.register(sys.stdout.fileno(), 0)  # errors are always told
    asked.poll()
    os._exit(1)


def _teller(shown: str, kind: str, bars: Bars):
    """A progress callback; speaks at most a few times a second."""
    spoken = [0.0]

    def tell(done, total, **figures):
        now = time.monotonic()
        if shown == "none" or (now - spoken[0] < 0.2 and done < total):
            return
        spoken[0] = now
        if shown == "json":
            sys.stdout.write(json.dumps({"done": done, "total": total, **figures}, default=float) + "\n")
            sys.stdout.flush()
        else:
            bars.show(kind, done, total, figures)

    return tell


def as_text(made: Artifact) -> str:
    """An artifact's report for people."""
    head = (
        f"{made.kind} of snapshot {made.sequence}, seed {made.seed}, params {msgspec.json.encode(made.params).decode()}"
    )
    return export_inspect.as_text(
        {"state": head, "snapshots": [made.sequence], "summary": made.report, "artifacts": {}}
    )
