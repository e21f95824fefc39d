"""Answers to questions by a published model: the probability of each, and the model that gave it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import anchored
from stream_engine.evaluation import FEATURE_MODEL, NoModel
from stream_engine.evaluation.connection import are_connected, components
from stream_engine.evaluation.participant_model import of_participant
from stream_engine.evaluation.probability import Model, by_features, model
from stream_engine.evaluation.questions import NOTHING, Four
from stream_engine.state.artifact import figure
from stream_engine.state.published import Published

Rows = Callable[[Sequence[Four]], np.ndarray]


class PredictedAnswers(NamedTuple):
    """Predictions of m questions."""

    p: np.ndarray  # (m,) NaN where no model predicts the question
    by: np.ndarray  # (m,) names of the models
    about: str  # one line: how many questions, and which models predicted them
    n_across: int = 0  # without p, as their objects are of sets that were never compared with each other
    as_group: bool = False  # `p` is the group's: the model has no parameters of the requested participant


class Answering:
    """A model that is chosen once, and predicts questions one after the other. Of the published state, it keeps only
    the model, the names of its objects, and their sets if there are several."""

    def __init__(self, published: Published, name: str | None = None, participant: str | None = None):
        """Choose the model of that name, or else the best; with `participant`, the embedding with this participant's
        parameters. Raises `NoModel`."""
        if participant is None:
            self._model, self._suffix, self._knows_participant = model(published, name), "", True
        else:
            self._model, self._suffix, self._knows_participant = _as_participant(published, name, participant)
        self._features = by_features(published) if name is None and not self._model.new_objects else None
        sets = None if self._model.name == FEATURE_MODEL else components(published.snapshot)
        self._sets = None if are_connected(sets) else sets
        self._rows = _row_reader(published, (self._features or self._model).new_objects)

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def answers(self, names: Sequence[Four]) -> PredictedAnswers:
        """P(d(i, j) < d(k, l)) of each question; by features where the chosen model does not know an object. O(m)."""
        chosen, rows = self._model, self._rows(names)
        p, by = chosen.probability(rows), np.array([chosen.name] * len(names), object)
        across = self._across(rows)
        p[across] = np.nan  # no answer is about the distance between sets, whatever the model
        by_alignment = np.flatnonzero(np.isnan(p)) if self._features else np.empty(0, np.int64)
        if self._features and len(by_alignment):
            p[by_alignment] = self._features.probability(rows[by_alignment])
            by_alignment = by_alignment[~np.isnan(p[by_alignment])]
            by[by_alignment] = self._features.name
        is_question, loss = [four != NOTHING for four in names], chosen.log_loss
        n_unknown = int(np.isnan(p[is_question]).sum())
        loss_text = "" if loss is None else f" (held-out log loss {loss:.3f})"
        about = f"{sum(is_question):,} questions predicted by {chosen.name}{loss_text}{self._suffix}"
        if len(by_alignment):
            about += f"; {len(by_alignment):,} of them by alignment: {chosen.name} does not know them"
        n_across = int((across & np.isnan(p)).sum())
        n_unknown -= n_across
        if n_across:
            about += f"; {n_across:,} without p: their objects are of sets that were never compared with each other, "
            about += "or by few questions"
        if n_unknown:
            about += f"; {n_unknown:,} without p: an object is unknown, or the model does not predict this kind"
        return PredictedAnswers(p, by, about, n_across, not self._knows_participant)

    def _across(self, rows: np.ndarray) -> np.ndarray:
        """(m,) bool: whether a question is about objects of several sets that were never compared with each other."""
        if self._sets is None:
            return np.zeros(len(rows), bool)
        known = (rows >= 0) & (rows < len(self._sets))
        of = np.where(known, self._sets[np.where(known, rows, 0)], -1)
        return (of >= 0).all(axis=1) & (of != of[:, :1]).any(axis=1)


def answered(
    published: Published, names: Sequence[Four], name: str | None = None, participant: str | None = None
) -> PredictedAnswers:
    """As `Answering(published, name, participant).answers(names)`. O(m + n)."""
    return Answering(published, name, participant).answers(names)


def _as_participant(published: Published, name: str | None, participant: str) -> tuple[Model, str, bool]:
    """`(the embedding with one participant's parameters, how to name it, whether it has such)`. Raises `NoModel`."""
    chosen = model(published, "embedding")
    if name not in (None, chosen.name):
        raise NoModel(
            f"model {name!r}: it has no individual differences; expected the model embedding for a participant"
        )
    online = published.artifacts.get("online_embedding")
    probability, participant_model = of_participant(published.artifacts["embedding"], participant, online)
    loss, parameters = figure(published.artifacts["embedding"].report, "knowing_worker", "log_loss"), "own weights"
    if not participant_model.has_own:
        loss, parameters = chosen.log_loss, "the group's weights: unknown to the model, or fewer than 20 answers"
    elif participant_model.own_map:
        parameters = "own map and the group's" + (", with own weights" if participant_model.weighted else "")
    elif not participant_model.weighted:
        parameters = "own lapse rate and the group's map"
    return (
        chosen._replace(probability=probability, log_loss=loss),
        f" as participant {participant} ({parameters})",
        participant_model.has_own,
    )


def _row_reader(published: Published, more_objects: tuple[str, ...] = ()) -> Rows:
    """Names of questions -> (m, 4) rows of the objects' ids; pairs that share an object have that first in both."""
    number = {name: i for i, name in enumerate((*published.snapshot.objects, *more_objects))}

    def rows(names: Sequence[Four]) -> np.ndarray:
        ids = np.array([[number.get(name, -1) for name in four] for four in names], np.int32).reshape(-1, 4)
        return np.ascontiguousarray(anchored(ids))

    return rows
