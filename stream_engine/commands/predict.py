"""`stream-engine predict`: questions in, the same questions with the probability that the first is nearer out.

Takes no lock; a run may be at work on the state. Reads whole files: some 2 kB of memory and 5 microseconds a question.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from connectors.disk import Disk, write_whole
from stream_engine.commands import snapshot_option, state_option
from stream_engine.commands.question_files import OUT, BadQuestion, Questions, read, written
from stream_engine.service import settings as configuration
from stream_engine.state.published import Published
from stream_engine.state.store import Store


@click.command("predict")
@state_option
@click.argument("file", nargs=-1, required=True)
@click.option("--model", metavar="NAME", help="Instead of the one with the least held-out log loss: see inspect.")
@click.option("--out", metavar="FILE", help="Instead of standard output; .csv, .jsonl or .parquet.")
@click.option("--columns", metavar="A=B,...", help="Names of fields in the files: anchor=probe,left=a,right=b.")
@snapshot_option
def command(
    state: str, file: tuple[str, ...], model: str | None, out: str | None, columns: str | None, snapshot: str
) -> None:
    """Answer questions: the probability that the first of two objects, or pairs, is the nearer one.

    FILE: .csv, .jsonl, .parquet, .arrow, also .gz, or - with anchor, left, right, or with pairs near and far. The
    output has the same fields, p, and model. p is empty about objects that the model does not know.
    """
    suffix = _suffix(file[0], out)
    questions = read(file, configuration.mapping(columns, "--columns") if columns else {})
    answered = answers(Store(state).published(snapshot), questions, model)
    content = written(answered.rows, suffix)
    if out is None:
        click.echo(content.decode(), nl=False)
    else:
        write_whole(Disk(), out, [content], durable=False)
    click.echo(answered.about, err=True)


class Answered(NamedTuple):
    """The questions with `p` and `model`; `about` says in one line what answered them."""

    rows: list[dict[str, Any]]
    about: str


def answers(published: Published, questions: Questions, name: str | None = None) -> Answered:
    """Questions with `p`, the probability that d(i, j) < d(k, l) is said, by the model of that name or the best. Raises
    `prediction.probability.NoModel`."""
    from stream_engine.prediction.answering import answered  # it loads scipy, which a bad file is told without

    found = answered(published, questions.names, name)
    columns = zip(questions.rows, found.p.tolist(), found.by.tolist(), strict=True)
    rows = [{**row, "p": None if np.isnan(each) else each, "model": which} for row, each, which in columns]
    return Answered(rows, found.about)


def _suffix(first: str, out: str | None) -> str:
    """What the output is written as. Raises `BadQuestion`."""
    if out is None:
        return ".csv" if first.removesuffix(".gz").endswith(".csv") else ".jsonl"
    suffix = os.path.splitext(out)[1]
    if suffix not in OUT:
        raise BadQuestion(f"--out {out}: got a name ending in {suffix!r}, expected one of {', '.join(OUT)}")
    if not Path(out).parent.is_dir():
        raise BadQuestion(f"--out {out}: there is no folder {Path(out).parent}")
    return suffix
