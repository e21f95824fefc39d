"""A classifier of comparisons in river's conventions: is `left` or `right` nearer to `anchor`?

x is {"anchor": a, "left": b, "right": c} (names, or whole numbers, which become text; other keys are ignored), and y is
True if left is nearer. An `Engine` counts the comparisons, an embedding that is updated with each of them predicts, and
probabilities are those of Platt's calibration of the margins before they were learned.
"""

import zlib
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import numpy as np
from river import base

from stream_engine.data.comparisons import InvalidEvent, Triplet
from stream_engine.embedding.online import OnlineEmbedding
from stream_engine.evaluation.platt import Calibration
from stream_engine.state.engine import Engine

# Answers after which the calibration is updated: each update takes the last thousands into account.
_CALIBRATION_BLOCK = 32


class ComparisonClassifier(base.Classifier):
    """Binary classifier of comparisons by an embedding that is updated with each of them (`embedding.online`); for
    river. An `Engine` counts them, available as `.engine`.

    Parameters
    ----------
    dimensions : int
        Number of dimensions of the embedding.
    seed : int
        Random seed of the embedding, and of random decisions in ties.

    Examples
    --------
    >>> model = ComparisonClassifier()
    >>> model.predict_proba_one({"anchor": "lemon", "left": "lime", "right": "bread"})
    {True: 0.5, False: 0.5}
    >>> model.learn_one({"anchor": "lemon", "left": "lime", "right": "bread"}, True)
    >>> model.predict_one({"anchor": "lemon", "left": "bread", "right": "lime"})
    False
    """

    def __init__(self, dimensions: int = 3, seed: int = 0):
        if dimensions < 1:
            raise ValueError(f"ComparisonClassifier: got dimensions = {dimensions}, expected 1 or more")
        self.dimensions, self.seed = dimensions, seed
        self.engine = Engine(("adds3", "triplet_counts"), guard=False)
        self._embedding = OnlineEmbedding(dimensions, seed=seed)
        self._calibration = Calibration()
        self._margins: list[float] = []

    def learn_one(self, x: dict, y: Any) -> None:
        """Count one comparison, and update the embedding.

        Parameters
        ----------
        x : dict
            `anchor`, `left`, `right`.
        y : bool
            Whether left is nearer.

        Raises
        ------
        InvalidEvent
            If the comparison is invalid.
        """
        anchor, left, right = _names(x)
        near, far = (left, right) if y else (right, left)
        margin = self._margin(anchor, near, far)
        self.engine.learn_one(Triplet(anchor, near, far))
        if margin:
            self._margins.append(margin)
        if len(self._margins) >= _CALIBRATION_BLOCK:
            self._calibration.learn(np.array(self._margins))
            self._margins = []
        a, b, c = self.engine.objects.find([anchor, near, far]).tolist()
        self._embedding.learn(np.array([[a, b, a, c]], np.int32))

    def _margin(self, *names: str) -> float:
        """The margin of names (anchor, near, far), above 0 if near is nearer; 0: undecided, or an unknown object."""
        ids = self.engine.objects.find(names).tolist()
        if min(ids) < 0:
            return 0.0
        a, b, c = ids
        margin = float(self._embedding.margins(np.array([[a, b, a, c]]))[0])
        return 0.0 if np.isnan(margin) else margin

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict[base.typing.ClfTarget, float]:
        """Probabilities of both answers.

        Parameters
        ----------
        x : dict
            `anchor`, `left`, `right`.
        **kwargs : optional
            Not used.

        Returns
        -------
        dict of bool to float
            `{True: P(left is nearer), False: P(right is nearer)}`; 1/2 if an object is new.

        Raises
        ------
        InvalidEvent
            If the question is invalid.
        """
        p = float(self._calibration.probability(np.array([self._margin(*_names(x))]))[0])
        return {True: p, False: 1.0 - p}

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """Predict whether left is nearer.

        Parameters
        ----------
        x : dict
            `anchor`, `left`, `right`.
        **kwargs : optional
            Not used.

        Returns
        -------
        bool
            The prediction; in a tie random, but the same for each repetition of a question.
        """
        anchor, left, right = _names(x)
        margin = self._margin(anchor, left, right)
        if margin:
            return margin > 0
        lo, hi = sorted((left, right))
        return bool(zlib.crc32(f"{self.seed}\0{anchor}\0{lo}\0{hi}".encode()) & 1) == (left == lo)

    def _unit_test_skips(self) -> set[str]:
        """river's checks that feed rows of numbers: these are no comparisons. tests/api/test_river.py runs them
        on some."""
        return {
            "check_learn_one",
            "check_pickling",
            "check_shuffle_features_no_impact",
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
            "check_predict_one_pure",
            "check_predict_one_before_any_learn",
            "check_no_state_aliasing_with_input",
            "check_clone_is_independent",
            "check_predict_proba_one",
            "check_classifier_tracks_seen_labels",
            "check_predict_proba_one_binary",
            "check_bounded_memory_growth",
        }


def _names(x: dict) -> tuple[str, str, str]:
    """Anchor, left and right of a question. Raises `InvalidEvent`."""
    names = []
    for key in ("anchor", "left", "right"):
        name = x.get(key)
        if isinstance(name, bool) or not isinstance(name, (str, int, np.integer)) or name == "":
            raise InvalidEvent(
                "wrong_type" if key in x else "missing_field",
                (
                    f"x[{key!r}]: got {name!r}, expected the name of an object; a question has the keys anchor, left, "
                    "right"
                ),
            )
        names.append(str(name))
    anchor, left, right = names
    if len(set(names)) < 3:
        raise InvalidEvent(
            "not_distinct", f"x: got anchor {anchor!r}, left {left!r}, right {right!r}; expected three objects"
        )
    return anchor, left, right


def as_stream(triplets: Iterable[Triplet | tuple], seed: int = 0) -> Iterator[tuple[dict, bool]]:
    """Triplets as a stream of (x, y), as river's `progressive_val_score` expects.

    Parameters
    ----------
    triplets : iterable of Triplet or tuple
        Triplets (anchor, near, far).
    seed : int
        Random seed that determines whether near is left or right.

    Yields
    ------
    tuple of dict and bool
        x with anchor, left, right; y: whether left is nearer.

    Examples
    --------
    >>> next(as_stream([Triplet("a", "b", "c")], seed=1))
    ({'anchor': 'a', 'left': 'b', 'right': 'c'}, True)
    """
    coin = Random(seed)
    for anchor, near, far in triplets:
        left = coin.random() < 0.5
        yield {"anchor": anchor, "left": near if left else far, "right": far if left else near}, left
