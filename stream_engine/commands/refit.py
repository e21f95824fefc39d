"""`stream-engine refit`: one refit of a published snapshot, in the foreground; it is also what refit workers run."""

import contextlib
import copy
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import click
from threadpoolctl import threadpool_limits

from stream_engine.commands import snapshot_option, state_option
from stream_engine.commands.input_options import apply_exclusion, exclusion_options
from stream_engine.data import available_memory
from stream_engine.data.progress_bars import Bars
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings import loading as configuration
from stream_engine.input.settings.loading import set_value, toml_value
from stream_engine.input.settings.refit_params import params_of, refit_params
from stream_engine.refits import ENDS_EARLY, NEEDED_ARTIFACT, REFITS, CannotRefit, former, refit_module
from stream_engine.state import exclusion
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

RESERVED = 1 << 30  # bytes


@click.command("refit")
@state_option
@click.argument("kind", metavar="KIND", type=click.Choice(list(REFITS)))
@snapshot_option
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Parameter of the refit.")
@click.option(
    "--objects",
    metavar="FILE",
    help=(
        "File of object names, one per line, to fit the model to. For the N objects with the most answers, use --set "
        "objects=N."
    ),
)
@click.option(
    "--config",
    metavar="FILE",
    help="TOML configuration file; uses [kernels], [refits] and [signing]. --set takes precedence.",
)
@exclusion_options
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output: every figure by name.")
@click.option("--params", default="{}", hidden=True)
@click.option("--seed", type=int, help="Random seed. Default: that of the configuration, otherwise 0.")
@click.option("--memory-gb", type=float, metavar="GB", help="Memory limit. Default: free memory.")
@click.option("--progress", "shown", default="bar", type=click.Choice(["bar", "json", "none"]), hidden=True)
def command(
    state: str,
    kind: str,
    snapshot: str,
    assignments: tuple[str, ...],
    objects: str | None,
    config: str | None,
    params: str,
    seed: int | None,
    memory_gb: float | None,
    shown: str,
    as_json: bool,
    exclude: tuple[str, ...],
    include: tuple[str, ...],
) -> None:
    """Fit one model to a published snapshot, in the foreground.

    KIND is spectral, hierarchy, reliability (accuracy of each participant), triplet_boost, classify, dimensions,
    sdp_clustering, alignment, embedding (the map), clusters, kernel_learning or partial_order_embedding.
    """
    if memory_gb is not None:
        limit_memory(memory_gb)
    settings = configuration.load(config, {"refits.seed": seed})
    configured = settings.refits.params.get(kind, {}) | json.loads(params)
    form = {name: value for name, value in assigned(assignments).items() if name == "form"}  # which may take no kernels
    parameters = assigned(assignments, params_of(settings, kind, configured | form))
    if objects is not None:
        parameters["objects"] = names_in(objects)
    store = Store(state, signing=configuration.signing_of(settings))
    apply_exclusion(store, exclude, include)
    artifact = refit(store, kind, snapshot, parameters, settings.refits.seed, shown)
    if as_json:
        click.echo(json.dumps(_figures(store, artifact, snapshot), ensure_ascii=False))
    elif shown != "json":
        click.echo(_as_text(store, artifact, snapshot))


def _figures(store: Store, artifact: Artifact, which: str) -> dict[str, Any]:
    """Every figure of an artifact, as `inspect --json` has them."""
    from stream_engine.exports.clusters import reports

    report = reports(store.published(which)).get(artifact.kind, artifact.report)
    figures = {"kind": artifact.kind, "snapshot": artifact.sequence, "seed": artifact.seed, "params": artifact.params}
    return figures | {"report": report}


def _as_text(store: Store, artifact: Artifact, which: str) -> str:
    """What an artifact found, in plain words, and where the rest is."""
    from stream_engine.commands.refit_text import plain_figures

    head = f"{artifact.kind}: fitted to snapshot {artifact.sequence} (seed {artifact.seed})"
    lines = [f"{text}: {value}" for text, value in plain_figures(_figures(store, artifact, which)["report"])]
    more = f"All figures: stream-engine inspect --state {store.directory} --json"
    page = f"Page: stream-engine report --state {store.directory} --out report.html"
    return "\n".join([head, *(f"  {line}" for line in lines), more, page])


def limit_memory(gigabytes: float) -> None:
    """This process may take so much from now on. What it asks for is refused with the figures; what it takes all the
    same ends it, so that it cannot take the memory of others (`RESERVED` is what libraries reserve and never touch)."""
    budget = int(gigabytes * 1e9)
    available_memory.give(budget)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = budget + RESERVED
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def assigned(assignments: Iterable[str], parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    """`["k=3", "similarity=k1"]` as parameters, over those `given`; values are TOML where they are TOML, else text.

    >>> assigned(["k=3", "kernels.taste.file=taste.csv"])
    {'k': 3, 'kernels': {'taste': {'file': 'taste.csv'}}}
    """
    parameters = copy.deepcopy(parameters or {})
    for text in assignments:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise BadSettings(f"--set: got {text!r}, expected KEY=VALUE")
        set_value(parameters, tuple(key.strip().split(".")), toml_value(value.strip()))
    return parameters


def names_in(path: str) -> list[str]:
    """The names of objects in a file, one per line; for `--objects FILE`. Raises `BadSettings`."""
    try:
        names = [line for line in Path(path).read_text(encoding="utf-8-sig").split("\n") if line]
    except OSError as error:
        raise BadSettings(f"--objects: {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadSettings(f"--objects: {path}: {error}") from None
    if not names:
        raise BadSettings(f"--objects: {path}: got no names, expected one per line")
    return names


def refit(store: Store, kind: str, which: str, params: dict[str, Any], seed: int, shown: str = "none") -> Artifact:
    """Make an artifact and publish it; `shown`: "bar", "json" (lines on standard output) or "none"."""
    checked = refit_params(kind, params)
    if shown == "json":
        threading.Thread(target=_end_with_the_reader, daemon=True).start()
    excluded = store.excluded()
    whole = store.named(which)
    snapshot = exclusion.without(whole, excluded)
    if whole.counters["comparisons"] and not snapshot.counters["comparisons"]:
        raise CannotRefit(f"{kind}: {exclusion.nothing_left(excluded)}")
    previous = store.latest_artifact(kind, snapshot.sequence, len(snapshot.objects))
    needed = _needed(store, kind, which, snapshot, excluded, seed, shown)
    began = time.process_time()
    with Bars() as bars, threadpool_limits(1):
        try:
            stop = _interrupted(shown) if kind in ENDS_EARLY else threading.Event()
            progress = _progress(shown, kind, bars, stop)
            artifact = refit_module(kind).refit(snapshot, checked, seed, previous, progress, **needed)
        except CannotRefit:
            if shown == "json":
                print(json.dumps({"impossible": True}), flush=True)
            raise
    published = store.publish_artifact(exclusion.with_exclusions(artifact, excluded, previous))
    with contextlib.suppress(OSError):  # the artifact is there; this is only told
        store.note_seconds(published, time.process_time() - began)
        if "held_out" in published.report:
            note_counts(store, snapshot, published.seed)
    return published


def _needed(
    store: Store, kind: str, which: str, snapshot: Snapshot, excluded: tuple[str, ...], seed: int, shown: str
) -> dict[str, Artifact]:
    """The artifact that the refit needs, of the same answers; made and published where there is none."""
    if kind not in NEEDED_ARTIFACT:
        return {}
    before = NEEDED_ARTIFACT[kind]
    artifact = store.latest_artifact(before, snapshot.sequence, len(snapshot.objects))
    if artifact is None or artifact.snapshot != snapshot.digest or exclusion.excluded_of(artifact) != excluded:
        artifact = refit(store, before, which, {}, seed, shown)
    return {"needed": artifact}


def fit_again(store: Store, which: str = "latest") -> None:
    """Repeat the refits of a snapshot that were made with other participants, with their parameters and seeds."""
    published = store.published(which)
    for kind in REFITS:
        artifact = published.artifacts.get(kind)
        if artifact is not None and exclusion.excluded_of(artifact) != published.excluded:
            params = {name: value for name, value in artifact.params.items() if name not in former(kind)}
            refit(store, kind, which, params, artifact.seed, "bar")


def note_counts(store: Store, snapshot: Snapshot, seed: int) -> None:
    """Note what counts alone tell of the judgements that refits with this seed report on, for whoever looks later.
    Raises OSError."""
    from stream_engine.exports.models import COUNTS_TOLD, counts_told

    noted = store.noted(COUNTS_TOLD)
    wanted = snapshot.digest, snapshot.counters["comparisons"], seed, list(store.excluded())
    if tuple(noted.get(key) for key in ("digest", "comparisons", "seed", "excluded")) != wanted:
        store.note(COUNTS_TOLD, counts_told(snapshot, seed) | {"excluded": wanted[-1]})


def _end_with_the_reader() -> None:
    """End this process when nobody is left to read its standard output, which is a pipe: the engine was killed."""
    hang_up = select.poll()
    hang_up.register(sys.stdout.fileno(), 0)  # errors are always told
    hang_up.poll()
    os._exit(1)


def _interrupted(shown: str) -> threading.Event:
    """Set by SIGINT (Ctrl-C): the refit then ends with the best so far. A second one ends the command; not that of a
    run, which ends its refits itself."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()
        if shown != "json":
            click.echo("stopping with the best so far; Ctrl-C again to end without a result", err=True)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, ask)
    return stop


def _progress(shown: str, kind: str, bars: Bars, stop: threading.Event) -> Callable[..., bool]:
    """A progress callback that shows something at most a few times a second; True once `stop` is set."""
    shown_at = 0.0

    def progress(step: float, total: float, **figures: Any) -> bool:
        """`step` of `total` steps, and figures of the solver (objective, gap, ...) by name."""
        nonlocal shown_at
        now = time.monotonic()
        if shown == "none" or (now - shown_at < 0.2 and step < total):
            return stop.is_set()
        shown_at = now
        if shown == "json":
            sys.stdout.write(json.dumps({"done": step, "total": total, **figures}, default=float) + "\n")
            sys.stdout.flush()
        else:
            bars.show(kind, step, total, figures)
        return stop.is_set()

    return progress
