"""`stream-engine predict`: questions in, the same questions with the probability that the first is nearer out.

Takes no lock; a run may be at work on the state. Reads whole files: some 2 kB of memory and 5 microseconds a question.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from connectors.disk import Disk, write_whole
from stream_engine.commands import snapshot_option, state_option
from stream_engine.commands.question_files import OUT, BadQuestion, Questions, read, written
from stream_engine.service import settings as configuration
from stream_engine.state.published import Published
from stream_engine.state.store import Store

if TYPE_CHECKING:
    from stream_engine.prediction.probability import Model


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
    from stream_engine.prediction.probability import model  # it loads scipy, which a bad file is told without

    chosen = model(published, name)
    p, by = _probabilities(chosen, published, questions), np.array([chosen.name] * len(questions.rows), object)
    if name is None and np.isnan(p).any() and "feature_metric" in published.artifacts:
        other = model(published, "feature_metric")  # objects that nobody compared
        q = _probabilities(other, published, questions)
        by[np.isnan(p) & ~np.isnan(q)] = other.name
        p = np.where(np.isnan(p), q, p)
    rows = [
        {**row, "p": None if np.isnan(each) else each, "model": which}
        for row, each, which in zip(questions.rows, p.tolist(), by.tolist(), strict=True)
    ]
    unknown, loss = int(np.isnan(p).sum()), chosen.log_loss
    told = "" if loss is None else f" (held-out log loss {loss:.3f})"
    about = f"{len(rows):,} questions answered by {chosen.name}{told}"
    if others := int((by != chosen.name).sum()):
        about += f", {others:,} of them, of objects that it does not know, by feature_metric"
    if unknown:
        about += f"; {unknown:,} without p: of an object that it does not know, or not of a kind that it is for"
    return Answered(rows, about)


def _probabilities(chosen: "Model", published: Published, questions: Questions) -> np.ndarray:
    """(m,) p of each question, by the names that a model knows."""
    number = {name: i for i, name in enumerate(chosen.names or published.snapshot.objects)}
    ids = np.array([[number.get(name, -1) for name in four] for four in questions.names], np.int32).reshape(-1, 4)
    return chosen.probability(_anchored(ids))


def _anchored(ids: np.ndarray) -> np.ndarray:
    """Pairs that share an object with that first in both, as a triplet stands."""
    from stream_engine.statistics.judgement_folds import anchored

    return np.ascontiguousarray(anchored(ids))


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
