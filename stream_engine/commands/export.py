"""`stream-engine export`: write results as files. Takes no lock; a run may be writing to the state."""

from functools import partial
from pathlib import Path

import click

from connectors.disk import Disk, write_whole
from stream_engine import exports
from stream_engine.commands import raw_option, snapshot_option, state_option
from stream_engine.exports import files
from stream_engine.state.store import Store

OBJECT_ORDERS = ("seen", "name")


@click.command("export")
@state_option
@click.option("--out", required=True, metavar="DIR", help="Output folder.")
@snapshot_option
@click.option("--format", default="npz", type=click.Choice(files.FORMATS), help="Format of arrays; documents are JSON.")
@click.option(
    "--object-order",
    default="seen",
    show_default=True,
    type=click.Choice(OBJECT_ORDERS),
    help="Order of objects: by first appearance or by name. With name, equal counts give equal files.",
)
@raw_option
@click.argument("what", nargs=-1)
def command(
    state: str, out: str, snapshot: str, format: str, object_order: str, raw: bool, what: tuple[str, ...]
) -> None:
    """Export results as files for NumPy, pandas, R and others: all, or those named in WHAT."""
    paths = export(state, out, snapshot, format, what, object_order, raw)
    for path in paths:
        click.echo(path)
    if not what and any(path.stem.split(".")[0] == "evidence" for path in paths):  # it is of the same counts
        again = f"stream-engine export --state {state} --out {out} {' '.join(sorted(exports.EVERY_QUESTION))}"
        click.echo(f"not written, a row per question: {again}", err=True)


def export(
    state: str,
    out: str,
    which: str,
    format: str,
    what: tuple[str, ...],
    object_order: str = "seen",
    raw: bool = False,
) -> list[Path]:
    """Write the files of the contract below `out`; all of them, or those named. Returns their paths.

    `object_order`: "seen" numbers objects as they first appeared, "name" as their names sort. `raw`: texts in CSV are
    written as they are.

    What is named and not there is an error, once the others are written; what is not named and not there is excluded.
    """
    every = exports.all_exports()
    unknown = [name for name in what if name not in every]
    if unknown:
        tables = [f"the table {name} comes with {exports.TABLES[name]}" for name in unknown if name in exports.TABLES]
        expected = "; ".join([f"expected any of {', '.join(every)}", *tables])
        raise click.UsageError(f"export: got {', '.join(unknown)}, {expected}")
    published = Store(state).published(which)
    if object_order == "name":
        from stream_engine.commands.by_name import by_name  # it compiles kernels; the other exports do without

        published = by_name(published)
    Path(out).mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    lacking = []
    for name in what or [name for name in every if name not in exports.ONLY_NAMED]:
        try:
            contents = exports.contents(name, published)
        except exports.NothingToExport as error:
            lacking.append(f"{name}: {error}")
            continue
        for stem, content in contents.items():
            for file, write in files.writers(stem, content, format, published.snapshot.objects, raw).items():
                paths.append(Path(out) / file)
                write_whole(Disk(), paths[-1], partial(_fill, write), durable=False)
    if what and lacking:
        alternatives = f" (written: {', '.join(map(str, paths))})" if paths else ""
        raise exports.NothingToExport("; ".join(lacking) + alternatives)
    return paths


def _fill(write: files.Writer, path: str) -> None:
    with open(path, "wb") as file:
        write(file)
