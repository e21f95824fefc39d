"""An embedding in d dimensions in scikit-learn's conventions: STE or t-STE with a lapse rate (room `embedding`).

It fits triplets and comparisons of four objects, answers new ones with probabilities, and its `transform` gives where
the objects lie, one row each, whatever comparisons it gets.
"""

from typing import Literal

import numpy as np

from stream_engine.api.answers import answers_of, rows_of, seed_of, snapshot_of, weights_of
from stream_engine.api.learned_objects import LearnedObjects
from stream_engine.data.packed_names import unpack_names
from stream_engine.embedding.fit import KERNELS
from stream_engine.evaluation.answer_probabilities import probabilities
from stream_engine.refits import embedding


class OrdinalEmbedding(LearnedObjects):
    """Objects as points, an answer the likelier the further apart; see `refits.embedding`.

    `n_components`: dimensions; None: the smallest number that predicts held-out answers as well as the best. `kernel`:
    "ste" or "t-ste", `ridge`: of the sum of squares of all coordinates; None: by held-out log loss. `lapse`: whether
    some answers are random. `held_out`: share of the questions in the validation set, if a setting is selected.
    Scores on new comparisons are for `score`, so that none are reported here.

    `tolerance`: of the objective's relative gain in an iteration, at which a fit ends, after `max_iterations` at the
    latest. `n_objects`: None goes by the objects in X. `random_state`: a whole number, or numpy's RandomState.

    Fitted: `objects_` (n_objects,), names or numbers, sorted; `embedding_` (n_objects, n_components), which `transform`
    gives, on principal axes; `lapse_`; `worker_lapse_`, by worker where `groups` says who answered; `ridge_`;
    `kernel_name_`; `report_`; `classes_`; `n_features_in_`.

    >>> line = OrdinalEmbedding(1, ridge=0.1, kernel="ste").fit([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 0]])
    >>> line.embedding_.shape, bool(line.predict_proba([[0, 1, 3]])[0, 1] > 0.5)
    ((4, 1), True)
    """

    def __init__(
        self,
        n_components=2,
        *,
        kernel=None,
        ridge=None,
        lapse=True,
        held_out=0.2,
        tolerance=1e-7,
        max_iterations=1000,
        n_objects=None,
        random_state=0,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.ridge = ridge
        self.lapse = lapse
        self.held_out = held_out
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Embed the objects of the comparisons X with answers y. `sample_weight`: how often each row was answered;
        `groups`: who answered it, each with a lapse rate of one's own. Raises ValueError, `CannotRefit` (one, too)."""
        rows = rows_of(self, X, y, reset=True)
        answers = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        if self.n_components is not None and self.n_components < 1:
            raise ValueError(f"OrdinalEmbedding: got n_components = {self.n_components}, expected 1 or more, or None")
        if self.kernel not in (None, *KERNELS):
            raise ValueError(f"OrdinalEmbedding: got kernel {self.kernel!r}, expected {', '.join(KERNELS)} or None")
        by_lapse: Literal["worker", "all", "none"] = "none" if not self.lapse else "all" if groups is None else "worker"
        params = embedding.Params(
            dimensions=self.n_components,
            kernel=self.kernel,
            ridge=self.ridge,
            lapse=by_lapse,
        )
        snapshot = snapshot_of(answers, ("triplet_counts", "quadruplet_counts"), groups)
        artifact = embedding.refit(
            snapshot,
            params,
            seed_of(self.random_state),
            validation_share=self.held_out,
            evaluate=False,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        self.objects_, self.classes_ = answers.objects, np.array([-1, 1])
        self.embedding_ = artifact.arrays["X"]
        self.report_ = dict(artifact.report)
        self.lapse_, self.alpha_ = float(artifact.arrays["lapse"]), self.report_["alpha"]
        workers = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"])
        self.worker_lapse_ = dict(zip(workers, artifact.arrays["worker_lapse"].tolist()))
        self.ridge_, self.kernel_name_ = self.report_["ridge"], self.report_["kernel"]
        return self

    def _learned(self):
        return self.embedding_

    def _probability(self, rows):
        return probabilities(self.embedding_, rows, self.lapse_, self.alpha_, scale=self.report_["scale"])

    def _margin(self, rows):
        return self._probability(rows) - 0.5
