"""Questions answered by a model of what is published: each with a probability, and with the model that gave it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.evaluation import NoModel
from stream_engine.evaluation.judgement_folds import anchored
from stream_engine.evaluation.probability import Model, model, of_participant
from stream_engine.evaluation.questions import Four
from stream_engine.state.artifact import figure
from stream_engine.state.published import Published


class Answers(NamedTuple):
    """`p` (m,) is NaN where no model knows; `by` (m,) names of models; `about` says in a line what answered them."""

    p: np.ndarray
    by: np.ndarray
    about: str


def answered(
    published: Published, names: Sequence[Four], name: str | None = None, participant: str | None = None
) -> Answers:
    """P(d(i, j) < d(k, l) is said) of each question, by the model of that name or the best; by the features' model
    where it alone knows an object. `participant`: by the embedding, as this participant answers. Raises `NoModel`.
    O(m + n)."""
    if participant is None:
        chosen, as_whom = model(published, name), ""
    else:
        chosen, as_whom = _as_participant(published, name, participant)
    p, by = _probabilities(chosen, published, names), np.array([chosen.name] * len(names), object)
    if name is None and np.isnan(p).any() and "feature_metric" in published.artifacts:
        other = model(published, "feature_metric")  # objects that nobody compared
        q = _probabilities(other, published, names)
        by[np.isnan(p) & ~np.isnan(q)] = other.name
        p = np.where(np.isnan(p), q, p)
    unknown, loss = int(np.isnan(p).sum()), chosen.log_loss
    told = "" if loss is None else f" (held-out log loss {loss:.3f})"
    about = f"{len(names):,} questions predicted by {chosen.name}{told}{as_whom}"
    if others := int((by != chosen.name).sum()):
        about += f", {others:,} of them (with objects unknown to it) by feature_metric"
    if unknown:
        about += f"; {unknown:,} without p: an object is unknown, or the model does not predict this kind"
    return Answers(p, by, about)


def _as_participant(published: Published, name: str | None, participant: str) -> tuple[Model, str]:
    """The embedding as one participant answers, and how it is said. Raises `NoModel`."""
    chosen = model(published, "embedding")
    if name not in (None, chosen.name):
        raise NoModel(
            f"model {name!r}: it has no individual differences; expected the model embedding for a participant"
        )
    online = published.artifacts.get("online_embedding")
    given, found = of_participant(published.artifacts["embedding"], participant, online)
    loss, whose = figure(published.artifacts["embedding"].report, "knowing_worker", "log_loss"), "own weights"
    if not found.known:
        loss, whose = chosen.log_loss, "the group's weights: unknown to the model, or fewer than 20 answers"
    elif not found.weighted:
        whose = "own lapse rate; no individual differences found"
    return chosen._replace(probability=given, log_loss=loss), f" as participant {participant} ({whose})"


def _probabilities(chosen: Model, published: Published, names: Sequence[Four]) -> np.ndarray:
    """(m,) p of each question, by the names that a model knows; pairs that share an object have that first in both."""
    number = {name: i for i, name in enumerate(chosen.names or published.snapshot.objects)}
    ids = np.array([[number.get(name, -1) for name in four] for four in names], np.int32).reshape(-1, 4)
    return chosen.probability(np.ascontiguousarray(anchored(ids)))
