"""Questions answered by a model of what is published: each with a probability, and with the model that gave it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import anchored
from stream_engine.evaluation import NoModel
from stream_engine.evaluation.probability import Model, by_features, model, of_participant
from stream_engine.evaluation.questions import NOTHING, Four
from stream_engine.state.artifact import figure
from stream_engine.state.published import Published

Rows = Callable[[Sequence[Four]], np.ndarray]


class PredictedAnswers(NamedTuple):
    """`p` (m,) is NaN where no model knows; `by` (m,) names of models; `about` says in a line what answered them.
    `as_group`: a participant was given of whom the model knows nothing, so `p` is the group's."""

    p: np.ndarray
    by: np.ndarray
    about: str
    as_group: bool = False


class Answering:
    """A model that was chosen once, for many questions one after the other. It keeps nothing of what is published but
    the model and the names of its objects."""

    def __init__(self, published: Published, name: str | None = None, participant: str | None = None):
        """The model of that name or the best; `participant`: the embedding, as this participant answers. Raises
        `NoModel`."""
        if participant is None:
            self._model, self._as_whom, self._known = model(published, name), "", True
        else:
            self._model, self._as_whom, self._known = _as_participant(published, name, participant)
        self._features = by_features(published) if name is None and not self._model.beside else None
        self._rows = _rows_by_name(published, (self._features or self._model).beside)

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def answers(self, names: Sequence[Four]) -> PredictedAnswers:
        """P(d(i, j) < d(k, l) is said) of each question; by features where the chosen model does not know an object.
        O(m)."""
        chosen, rows = self._model, self._rows(names)
        p, by = chosen.probability(rows), np.array([chosen.name] * len(names), object)
        more = np.flatnonzero(np.isnan(p)) if self._features else np.empty(0, np.int64)
        if self._features and len(more):
            p[more] = self._features.probability(rows[more])
            more = more[~np.isnan(p[more])]
            by[more] = self._features.name
        asked, loss = [four != NOTHING for four in names], chosen.log_loss
        unknown = int(np.isnan(p[asked]).sum())
        told = "" if loss is None else f" (held-out log loss {loss:.3f})"
        about = f"{sum(asked):,} questions predicted by {chosen.name}{told}{self._as_whom}"
        if len(more):
            about += f"; {len(more):,} of them by alignment: {chosen.name} does not know an object"
        if unknown:
            about += f"; {unknown:,} without p: an object is unknown, or the model does not predict this kind"
        return PredictedAnswers(p, by, about, not self._known)


def answered(
    published: Published, names: Sequence[Four], name: str | None = None, participant: str | None = None
) -> PredictedAnswers:
    """As `Answering(published, name, participant).answers(names)`. O(m + n)."""
    return Answering(published, name, participant).answers(names)


def _as_participant(published: Published, name: str | None, participant: str) -> tuple[Model, str, bool]:
    """The embedding as one participant answers, how it is said, and whether it knows them. Raises `NoModel`."""
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
    elif found.own_map:
        whose = "own map and the group's" + (", with own weights" if found.weighted else "")
    elif not found.weighted:
        whose = "own lapse rate and the group's map"
    return chosen._replace(probability=given, log_loss=loss), f" as participant {participant} ({whose})", found.known


def _rows_by_name(published: Published, beside: tuple[str, ...] = ()) -> Rows:
    """Names of questions -> (m, 4) rows of the objects' ids; pairs that share an object have that first in both."""
    number = {name: i for i, name in enumerate((*published.snapshot.objects, *beside))}

    def rows(names: Sequence[Four]) -> np.ndarray:
        ids = np.array([[number.get(name, -1) for name in four] for four in names], np.int32).reshape(-1, 4)
        return np.ascontiguousarray(anchored(ids))

    return rows
