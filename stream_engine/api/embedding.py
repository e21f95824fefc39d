"""An embedding in d dimensions in scikit-learn's conventions: STE or t-STE with a lapse rate (room `embedding`).

It predicts new triplets and comparisons of four objects with probabilities, and its `transform` returns the coordinates
of the objects, one row each, whatever comparisons it gets.
"""

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from stream_engine.api.answers import (
    COUNT,
    POSITIVE,
    RandomState,
    answers_of,
    groups_of,
    rows_of,
    seed_of,
    snapshot_of,
    weights_of,
)
from stream_engine.api.learned_objects import LearnedObjects
from stream_engine.data.packed_names import unpack_names
from stream_engine.embedding.fit import KERNELS
from stream_engine.evaluation.learned import of_embedding
from stream_engine.evaluation.participant_model import of_participant
from stream_engine.refits import embedding


class OrdinalEmbedding(LearnedObjects):
    r"""Coordinates of objects by maximum likelihood, with lapse rates; see `refits.embedding`.

    .. math:: P(\text{near}) = (1 - \lambda) \, \sigma\!\left(d_{\text{far}}^2 - d_{\text{near}}^2\right) +
    \tfrac{\lambda}{2} \quad\text{(STE)}

    Parameters
    ----------
    n_components : int, optional
        Number of dimensions; None: the smallest that predicts held-out answers nearly as well as the best.
    kernel : {'ste', 't-ste'}, optional
        The model of an answer; by default selected by held-out log loss.
    ridge : float, optional
        Weight of the sum of squares of all coordinates; by default selected by held-out log loss.
    lapse : bool
        Whether to estimate lapse rates.
    participants : {'test', 'weights', 'alike'}
        Where `groups` says who answered, whether each has weights of their own on the axes: 'test', if these predict
        held-out responses significantly better than one map; 'weights', always; 'alike', never.
    held_out : float
        Share of the questions in the validation set, if a setting is selected. Use `score` to evaluate new comparisons.
    tolerance : float
        A fit ends when an iteration improves the objective by less than this share.
    max_iterations : int
        Maximum number of iterations of a fit.
    n_objects : int, optional
        By default the objects in X.
    random_state : int or RandomState
        Random seed.

    Attributes
    ----------
    objects_ : ndarray, shape (n_objects,)
        Names or numbers, sorted.
    embedding_ : ndarray, shape (n_objects, n_components)
        Coordinates on principal axes, or on those of the weights, as returned by `transform`.
    lapse_ : float
        Lapse rate of an unknown participant.
    worker_lapse_ : dict
        Lapse rate of each participant, if `groups` was given.
    participant_weights_ : dict
        Weights of each participant on the axes, (n_components,); empty if one map is used.
    ridge_ : float
        The ridge used.
    kernel_name_ : str
        The kernel used.
    report_ : dict
        Figures of the fit.
    classes_ : ndarray
        -1 and 1.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> line = OrdinalEmbedding(1, ridge=0.1, kernel="ste").fit([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 0]])
    >>> line.embedding_.shape, bool(line.predict_proba([[0, 1, 3]])[0, 1] > 0.5)
    ((4, 1), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [COUNT, None],
        "kernel": [StrOptions(set(KERNELS)), None],
        "ridge": [POSITIVE, None],
        "lapse": ["boolean"],
        "participants": [StrOptions({"test", "weights", "alike"})],
        "held_out": [Interval(Real, 0, 1, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "max_iterations": [COUNT],
        "n_objects": [COUNT, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        kernel: Literal["ste", "t-ste"] | None = None,
        ridge: float | None = None,
        lapse: bool = True,
        participants: Literal["test", "weights", "alike"] = "test",
        held_out: float = 0.2,
        tolerance: float = 1e-7,
        max_iterations: int = 1000,
        n_objects: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.ridge = ridge
        self.lapse = lapse
        self.participants = participants
        self.held_out = held_out
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Embed the objects of comparisons.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        y : array, shape (m,), optional
            Answers.
        sample_weight : array of int, shape (m,), optional
            How often each row was answered.
        groups : array, shape (m,), optional
            The participant of each row; each has their own lapse rate, and weights (see `participants`).

        Returns
        -------
        OrdinalEmbedding
            The fitted estimator.

        Raises
        ------
        ValueError
            For invalid input, and if the fit is impossible (`CannotRefit`).
        """
        self._validate_params()
        rows = rows_of(self, X, y, reset=True)
        answers, self.objects_ = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        participant_of_row = groups_of(groups, len(rows))
        by_lapse: Literal["worker", "all", "none"] = "none" if not self.lapse else "all" if groups is None else "worker"
        params = embedding.Params(
            dimensions=self.n_components,
            kernel=self.kernel,
            ridge=self.ridge,
            lapse=by_lapse,
            participants=self.participants if by_lapse == "worker" else "alike",
        )
        snapshot = snapshot_of(answers, self.objects_, ("triplet_counts", "quadruplet_counts"), participant_of_row)
        artifact = embedding.refit(
            snapshot,
            params,
            seed_of(self.random_state),
            validation_share=self.held_out,
            evaluate=False,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        self.classes_ = np.array([-1, 1])
        self.embedding_ = artifact.arrays["X"]
        self.report_ = dict(artifact.report)
        self.lapse_, self.alpha_ = float(artifact.arrays["lapse"]), self.report_["alpha"]
        workers = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"])
        self.worker_lapse_ = dict(zip(workers, artifact.arrays["worker_lapse"].tolist()))
        weights = artifact.arrays.get("worker_weights")
        self.participant_weights_ = {} if weights is None else dict(zip(workers, weights))
        self._artifact = artifact
        self.ridge_, self.kernel_name_ = self.report_["ridge"], self.report_["kernel"]
        return self

    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:
        """Predict how likely the second and the first object of each row is found nearer.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        groups : array, shape (m,), optional
            Who answers each row. A participant of `fit` answers by their own weights and lapse rate, anybody else by
            the group's weights and the mean lapse rate, which is also the default.

        Returns
        -------
        ndarray, shape (m, 2)
            Probabilities in the order of `classes_`; 0.5 for unknown objects.
        """
        p = super().predict_proba(X)[:, 1]
        if (participants := groups_of(groups, len(p))) is not None:
            rows = rows_of(self, X)
            for name in np.unique(participants).tolist():
                if name in self.worker_lapse_:
                    of = np.flatnonzero(participants == name)
                    p[of] = self._answer(rows[of], of_participant(self._artifact, name)[0], 0.5)
        return np.stack([1.0 - p, p], axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> float:
        """Compute the accuracy of predicted comparisons.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        y : array, shape (m,), optional
            Answers.
        sample_weight : array, shape (m,), optional
            Weight of each row.
        groups : array, shape (m,), optional
            Who answered each row, as in `predict_proba`.

        Returns
        -------
        float
            Share of correct predictions; ties count half.
        """
        if groups is None:
            return super().score(X, y, sample_weight)
        p = self.predict_proba(rows_of(self, X, y), groups)[:, 1]
        return float(np.average((p > 0.5) + (p == 0.5) / 2, weights=sample_weight))

    def _object_values(self) -> np.ndarray:
        return self.embedding_

    def _probability(self, rows: np.ndarray) -> np.ndarray:
        return of_embedding(self._artifact)(rows)

    def _margin(self, rows: np.ndarray) -> np.ndarray:
        return self._probability(rows) - 0.5
