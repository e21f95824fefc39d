"""`stream-engine align`: which feature sets see the objects as people do."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from stream_engine.alignment.feature_files import SUFFIXES, BadFeatures, FeatureSpec, read
from stream_engine.commands import snapshot_option
from stream_engine.commands.input_options import no_answers, reading_options, settings_of
from stream_engine.report.findings.words import cell
from stream_engine.state.published import Published
from stream_engine.state.store import Store

SHOWN = [
    "set",
    "transform",
    "accuracy",
    "low",
    "high",
    "by_object",
    "log_loss",
    "behind",
    "weight",
    "adds",
    "left",
]  # columns


@click.command("align")
@click.argument("features", nargs=-1, required=True)
@click.option("--state", metavar="DIR", help="State directory with the answers. The result is stored in it.")
@click.option("--answers", multiple=True, metavar="FILE", help="File of answers, instead of --state (repeatable).")
@click.option("--names", metavar="FILE", help="Names of the rows of arrays: one per line, or a .json list.")
@click.option("--quick", is_flag=True, help="Skip linear maps and the map of the answers, which take longest.")
@click.option("--out", metavar="DIR", help="Folder for alignment.csv, transform.npz and report.html.")
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@reading_options
@snapshot_option
def command(
    features: tuple[str, ...],
    state: str | None,
    answers: tuple[str, ...],
    names: str | None,
    quick: bool,
    out: str | None,
    seed: int,
    snapshot: str,
    **options: Any,
) -> None:
    """Test which feature sets (of networks, pixels, ratings) predict people's answers, and learn transforms.

    FEATURES are files [NAME=]FILE[:ARRAY] with a row of numbers for each object: .npy, .npz, .csv, .parquet or
    .safetensors, joined with the answers by name. Each set is tested as it is, with learned weights, with a learned
    linear map, and together with the others; what is learned, on responses and on objects that it did not have. Prints
    a table. `report`, `predict` and `export` of the state use the result.
    """
    if bool(state) == bool(answers):
        raise click.UsageError(
            f"align: expected either --state DIR or --answers FILE, got {'both' if state else 'none'}"
        )
    from stream_engine.commands.refit import refit

    specs = parsed(features, names)
    for name, spec in specs.items():
        read(name, spec)  # so that a bad file is told before answers are read
    with ExitStack() as stack:
        folder = state or stack.enter_context(tempfile.TemporaryDirectory(prefix="align-"))
        if answers:
            _read(folder, answers, options, [] if quick else ["embedding"])
        params = {"features": msgspec.to_builtins(specs), "linear": not quick}
        refit(Store(folder), "alignment", snapshot, params, seed, "bar")
        published = Store(folder).published(snapshot)
        click.echo(as_text(published))
        if out is not None:
            _write(folder, out, snapshot)
    if state and "embedding" not in published.artifacts:
        click.echo(f"to compare with the map of the answers: stream-engine refit --state {state} embedding", err=True)


def _read(folder: str, answers: tuple[str, ...], options: dict[str, Any], kinds: list[str]) -> None:
    """Read files of answers into a state; `kinds` is the map that features are compared with."""
    from stream_engine.data import logs
    from stream_engine.data.progress_bars import Bars
    from stream_engine.service import run

    logs.configure(level="warning")
    options = {**options, "source": answers, "config": None}
    settings = settings_of(options, **{"refits.kinds": kinds, "state": folder})
    with Bars() as bars:
        run.run(settings, bars)
    if not Store(folder).published().snapshot.counters["events"]:
        raise no_answers(answers)


def _write(folder: str, out: str, snapshot: str) -> None:
    from stream_engine.commands.export import export
    from stream_engine.report.writing import write

    for path in export(folder, out, snapshot, "npz", ("alignment",)):
        click.echo(path)
    click.echo(write(Store(folder).published(snapshot), Path(out) / "report.html").page)


def as_text(published: Published) -> str:
    """What was left out, the table, and a warning of a set that was made from the answers."""
    from stream_engine.exports.alignment import table, too_good

    report, columns = published.artifacts["alignment"].report, table(published)
    head = f"{report['with_features']:,} of {report['objects']:,} objects have features in every set; "
    head += f"{report['answers']:,.0f} comparisons tested, {report['without_features']:,.0f} about others left out"
    lines = [SHOWN, *zip(*(map(cell, columns[name]) for name in SHOWN))]
    width = [max(map(len, column)) for column in zip(*lines)]
    rows = ["  ".join(cell.ljust(size) for cell, size in zip(line, width)).rstrip() for line in lines]
    if suspect := too_good(report):
        rows.append(f"{suspect} predicts more than people agree with each other: was it made from these answers?")
    return "\n".join([head, *rows])


def parsed(texts: tuple[str, ...], names: str | None) -> dict[str, FeatureSpec]:
    """Sets of a command line, `[NAME=]FILE[:ARRAY]`; `names` is the file of names of all that have none. The name of a
    set is that of its file by default. Raises `BadFeatures`.

    >>> parsed(("clip=a.npz:image", "b.csv"), None)["clip"].array
    'image'
    """
    specs: dict[str, FeatureSpec] = {}
    for text in texts:
        name, equals, file = text.rpartition("=")
        array = None
        if not file.lower().endswith(SUFFIXES) and ":" in file:
            file, _, array = file.rpartition(":")
        name = name if equals else Path(file).stem
        if name in specs:
            raise BadFeatures(f"features {name!r}: got two sets with this name; next: NAME={file}")
        mapped = file.lower().endswith((".npy", ".npz", ".safetensors"))
        specs[name] = FeatureSpec(file, names if mapped else None, array)
    return specs
