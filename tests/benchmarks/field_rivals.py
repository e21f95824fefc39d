"""The embeddings of cblearn or of salmon on one split, by their defaults: run by an interpreter that has either.

    python field_rivals.py IN.npz OUT.npz SECONDS

IN: train, test (m, 3) rows anchor, near, far; validation (m,) bool of the training rows; n. Each method is fitted to
the training rows outside the validation set in each number of dimensions. The one with the best accuracy on the
validation set is taken, with the slope that gives its margins the smallest log loss there, and fitted to all training
rows. OUT: margins NAME (m,) of the test rows times that slope, NAME_seconds of CPU. A fit that takes longer than
SECONDS of CPU is ended, and the method is left out. Of salmon it is the default of its `OfflineEmbedding`, CKL, with
`EPOCHS` passes over the answers: by default there are 400,000, an hour and more a fit.
"""

import importlib.util
import signal
import sys
import time
import warnings

import numpy as np

METHODS = {"STE": "STE", "t-STE": "TSTE", "SOE": "SOE", "CKL": "CKL", "GNMDS": "GNMDS"}
SALMON, EPOCHS = "salmon CKL", 1000
DIMENSIONS = (2, 5, 10)


class TooLong(Exception):
    """A fit took longer than it may."""


def stopped(*_: object) -> None:
    raise TooLong


def margins(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distance to the far object less that to the near one."""
    anchor, near, far = (points[column] for column in rows.T)
    return ((anchor - far) ** 2).sum(axis=1) - ((anchor - near) ** 2).sum(axis=1)


def fitted(name: str, rows: np.ndarray, n: int, d: int, seconds: int) -> np.ndarray:
    """(n, d) points."""
    signal.signal(signal.SIGPROF, stopped)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        if name == SALMON:
            from salmon.triplets.offline import OfflineEmbedding  # of the other interpreter

            made = OfflineEmbedding(n=n, d=d, random_state=0, max_epochs=EPOCHS, verbose=0).initialize(rows)
            while made.opt_.meta_["num_grad_comps"] < EPOCHS * len(rows):  # its `fit` without figures
                made.partial_fit(rows)
            return np.asarray(made.embedding_)
        from cblearn import embedding

        return np.asarray(
            getattr(embedding, METHODS[name])(n_components=d, random_state=0).fit(rows, n_objects=n).embedding_
        )
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def slope(margin: np.ndarray) -> float:
    """Of the logistic function of margins whose log loss is the smallest of a grid."""
    grid = np.geomspace(1e-3, 1e3, 121) / max(float(np.abs(margin).mean()), 1e-12)
    return float(grid[np.argmin([np.logaddexp(0.0, -each * margin).mean() for each in grid])])


def main() -> None:
    given, out = np.load(sys.argv[1]), {}
    train, test, validation, n = given["train"], given["test"], given["validation"], int(given["n"])
    for name in METHODS if importlib.util.find_spec("cblearn") else [SALMON]:
        begin = time.process_time()
        try:
            tried = []
            for d in (each for each in DIMENSIONS if each < n - 1):
                margin = margins(fitted(name, train[~validation], n, d, int(sys.argv[3])), train[validation])
                tried.append(((margin > 0).mean(), -d, slope(margin)))
            _, d, scale = max(tried)
            out[name] = scale * margins(fitted(name, train, n, -d, int(sys.argv[3])), test)
        except TooLong:
            continue
        out[f"{name}_d"], out[f"{name}_seconds"] = np.array(-d), np.array(time.process_time() - begin)
    np.savez(sys.argv[2], **out)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
