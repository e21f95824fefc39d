"""`stream-engine predict`: questions in, the same questions with the probability that the first is nearer out.

Takes no lock; a run may be writing to the state. About 2 kB of memory and 5 microseconds per question.
"""

import io
import os
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
import numpy as np

from connectors.disk import Disk, write_whole
from connectors.files.readers import KINDS
from stream_engine.commands import raw_option, snapshot_option, state_option
from stream_engine.commands.input_options import apply_exclusion, exclusion_options, reading_options, settings_of
from stream_engine.data.spreadsheet_cells import csv_text
from stream_engine.evaluation.questions import BadQuestion, QuestionTable
from stream_engine.input.question_files import read
from stream_engine.input.settings.loading import signing_of
from stream_engine.state.published import Published
from stream_engine.state.store import Store

OUT = (".jsonl", ".csv", ".parquet")


def as_file(rows: list[dict[str, Any]], suffix: str, raw: bool) -> bytes:
    """The questions with their answers as a file of that suffix; a missing value is null, in CSV empty. `raw`: texts in
    CSV are written as they are."""
    if suffix == ".jsonl":
        encode = msgspec.json.Encoder().encode
        return b"".join(encode(row) + b"\n" for row in rows)
    fields = list(dict.fromkeys(field for row in rows for field in row))
    if suffix == ".csv":
        return csv_text([fields, *([_cell(row.get(field, "")) for field in fields] for row in rows)], raw).encode()
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    columns = {field: [row.get(field) for row in rows] for field in fields}
    columns = {field: _of_one_kind(values) for field, values in columns.items()}
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    return "|".join(map(str, value)) if isinstance(value, list) else value


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Values of a column as text where they are of several kinds, which a column of Parquet cannot be."""
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) <= 1 else [None if value is None else str(value) for value in values]


@click.command("predict")
@state_option
@click.argument("source", nargs=-1, required=True)
@click.option(
    "--model", metavar="NAME", help="Model to use. Default: the one with the lowest held-out log loss (see inspect)."
)
@click.option(
    "--participant", metavar="NAME", help="Predict the answers of this participant. Default: of a new participant."
)
@click.option("--out", metavar="FILE", help="Output file: .csv, .jsonl or .parquet. Default: standard output.")
@reading_options
@click.option("--config", metavar="FILE", help="TOML configuration file of a run; uses [input] and [signing].")
@exclusion_options
@snapshot_option
@raw_option
def command(
    state: str,
    source: tuple[str, ...],
    model: str | None,
    participant: str | None,
    out: str | None,
    snapshot: str,
    raw: bool,
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    **options: Any,
) -> None:
    """Predict the answers to questions: the probability that the first of two objects, or pairs, is nearer.

    SOURCE is a file or a glob pattern, as for run, or -, with the fields anchor, left, right, or pairs near and far,
    or a file of answers, whose questions are predicted. The output has the same fields, p, and model. p is empty if
    an object is unknown to the model, or the objects are of sets that were never compared with each other. For the
    embedding, p is at least half the mean lapse rate away from 0 and 1. It is the expected share of people who give
    this answer, not a confidence in the map. With --participant, it is the probability that this participant gives
    it, by their own weights on the embedding's axes if participants differ.
    """
    suffix = _suffix(source[0], options["input__format"], out)
    settings = settings_of({**options, "source": source})
    questions = read(settings)
    store = Store(state, signing=signing_of(settings))
    if exclude or include:
        from stream_engine.commands.refit import fit_again

        apply_exclusion(store, exclude, include)
        fit_again(store, snapshot)
    answered = answers(store.published(snapshot), questions, model, participant)
    content = as_file(answered.rows, suffix, raw)
    if out is None:
        click.echo(content.decode(), nl=False)
    else:
        write_whole(Disk(), out, [content], durable=False)
    click.echo(answered.about, err=True)


class Predictions(NamedTuple):
    """The questions with `p` and `model`; `about` summarises, in lines, the models and the rows that are not
    questions."""

    rows: list[dict[str, Any]]
    about: str


def answers(
    published: Published, questions: QuestionTable, name: str | None = None, participant: str | None = None
) -> Predictions:
    """Questions with `p`, the probability of the answer d(i, j) < d(k, l), by the model of that name or the best, or of
    one participant. Raises `evaluation.probability.NoModel`."""
    from stream_engine.evaluation.answering import answered  # it loads scipy, which a bad file is told without

    predictions = answered(published, questions.names, name, participant)
    columns = zip(questions.rows, predictions.p.tolist(), predictions.by.tolist(), strict=True)
    rows = [{**row, "p": None if np.isnan(p) else p, "model": model} for row, p, model in columns]
    return Predictions(rows, "\n".join(filter(None, (predictions.about, questions.note))))


def _suffix(first: str, format: str | None, out: str | None) -> str:
    """The format of the output. Raises `BadQuestion`."""
    if out is None:
        plain = first.lower().removesuffix(".gz").removesuffix(".zst")
        return ".csv" if (format or KINDS.get(Path(plain).suffix)) == "csv" else ".jsonl"
    suffix = os.path.splitext(out)[1]
    if suffix not in OUT:
        raise BadQuestion(f"--out {out}: got a name ending in {suffix!r}, expected one of {', '.join(OUT)}")
    if not Path(out).parent.is_dir():
        raise BadQuestion(f"--out {out}: there is no folder {Path(out).parent}")
    return suffix
