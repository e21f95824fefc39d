"""Objects with features that nobody compared: who tells them best? Handwritten digits, 17 of 85 never compared.

    python -m tests.benchmarks.unseen_objects [--splits 5] [--answers 3000]

Features are the 20 leading principal axes of scikit-learn's digits; answers go by distances along the nine directions
that part the classes (linear discriminants), by the formula of STE, so features tell, but not as they are. Every model
learns from triplets about 68 digits and is asked about triplets with a digit that it never met: accuracy beside the
better answer's, which is the ceiling, and log loss; means over splits, standard deviation behind, CPU seconds.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from stream_engine.kernel_learning.auxiliary_files import KernelSpec
from stream_engine.kernel_learning.distance_operator import excess
from stream_engine.refits import feature_metric, kernel_learning, partial_order_embedding
from tests.support.kernel_reference import snapshot_of

OBJECTS, UNSEEN, FEATURES = 85, 17, 20


def world(seed: int, answers: int):
    """(features, (m, 3) training triplets, (q, 3) questions about unseen objects, P of each)."""
    rng = np.random.default_rng(seed)
    images, classes = load_digits(return_X_y=True)
    chosen = rng.permutation(len(images))[:OBJECTS]
    features = PCA(FEATURES, random_state=0).fit_transform(images)
    hidden = LinearDiscriminantAnalysis().fit(features, classes).transform(features)[chosen]
    hidden /= np.sqrt(((hidden - hidden.mean(axis=0)) ** 2).sum(axis=1).mean()) / 2.0

    def asked(m: int, among: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.array([rng.choice(among, 3, replace=False) for _ in range(m)])
        near, far = (((hidden[rows[:, 0]] - hidden[rows[:, c]]) ** 2).sum(axis=1) for c in (1, 2))
        return rows, 1 / (1 + np.exp(near - far))

    rows, p = asked(answers, OBJECTS - UNSEEN)
    train = np.where((rng.random(answers) < p)[:, None], rows, rows[:, [0, 2, 1]])
    questions, p = asked(6000, OBJECTS)
    new = (questions >= OBJECTS - UNSEEN).any(axis=1)
    return features[chosen], train, questions[new], p[new]


def gram_of(name: str, snapshot, spec: KernelSpec) -> tuple[np.ndarray, float, float]:
    """(K over all objects, slope of its probabilities, CPU seconds)."""
    began = time.process_time()
    linear, gaussian = spec, KernelSpec(spec.file, "rbf")
    kernels = {"linear": linear, "rbf": gaussian}
    if name.startswith("RCKL"):
        made = kernel_learning.refit(
            snapshot, kernel_learning.Params(form=name[-2:].lower().replace("kl", "mkl"), kernels=kernels), 0
        )
    elif name == "POE, raw":
        made = partial_order_embedding.refit(
            snapshot, partial_order_embedding.Params(constraints="raw", kernels=kernels), 0
        )
    else:
        forms = feature_metric.FORMS if name == "feature_metric" else (name,)
        made = feature_metric.refit(snapshot, feature_metric.Params(features=linear, forms=forms), 0)
    gram = made.arrays["K"] if "K" in made.arrays else made.arrays["points"] @ made.arrays["points"].T
    return gram, made.report["probability_slope"] or 1.0, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--answers", type=int, default=3000)
    given = parser.parse_args()
    names = ("euclid", "mkl", "metric", "feature_metric", "RCKL-AK", "RCKL-MKL", "POE, raw")
    found: dict[str, list] = {name: [] for name in names}
    best = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        for split in range(given.splits):
            features, train, rows, p = world(split, given.answers)
            snapshot = snapshot_of(train, OBJECTS)
            path = Path(folder) / f"{split}.npz"
            np.savez(path, x=features, objects=np.array(snapshot.objects))
            best.append(np.maximum(p, 1 - p).mean())
            for name in names:
                gram, slope, seconds = gram_of(name, snapshot, KernelSpec(str(path), "linear", array="x"))
                margin = -excess(np.ascontiguousarray(gram), rows[:, [0, 1, 0, 2]].astype(np.int32))
                right = np.where(margin > 0, p, np.where(margin < 0, 1 - p, 0.5))
                loss = p * np.logaddexp(0, -slope * margin) + (1 - p) * np.logaddexp(0, slope * margin)
                found[name].append((right.mean(), loss.mean(), seconds))
    print(f"{given.answers:,} answers, {given.splits} splits; the better answer {np.mean(best):.3f}")
    for name, each in found.items():
        (right, loss, seconds), (spread, *_) = np.mean(each, axis=0), np.std(each, axis=0)
        print(f"{name:18}{right:7.3f} ({spread:.3f})  log loss {loss:.3f}  {seconds:6.1f} s CPU")


if __name__ == "__main__":
    main()
