"""What a user of cblearn writes, with our estimators in place: the same arrays, the same calls, side by side.

    python -m tests.benchmarks.cblearn_workflow --cblearn PYTHON [--seeds 3]

`--cblearn` is the interpreter of another environment that has cblearn (it pins an old numpy). It makes the data with
its own `make_random_triplets`, in its formats list-order and list-boolean, noisy, over three blobs; fits STE and
ComparisonHC and saves the arrays; ours then fit what was saved as it is. Scores on held-out triplets; adjusted Rand
index; CPU seconds.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from stream_engine.estimators import ComparisonClustering, ComparisonEmbedding

OBJECTS, TRIPLETS = 30, 3000
THEIRS = """
import sys, time, warnings; warnings.simplefilter("ignore")
import numpy as np
from sklearn.datasets import make_blobs
from cblearn.datasets import make_random_triplets
from cblearn.embedding import STE
from cblearn.cluster import ComparisonHC
path, seed, n, m = sys.argv[1], *map(int, sys.argv[2:])
points, group = make_blobs(n, centers=[[0, 0], [7, 0], [0, 7]], random_state=seed)
noisy = dict(noise="normal", noise_options={"scale": 2.0}, size=m, random_state=seed)
ordered = make_random_triplets(points, result_format="list-order", **noisy)
asked, said = make_random_triplets(points, result_format="list-boolean", **noisy)
test = make_random_triplets(points, result_format="list-order", size=m, random_state=seed + 1)
began = time.process_time()
model = STE(n_components=2, random_state=seed).fit(ordered)
score, ste = model.score(test), time.process_time() - began
began = time.process_time()
labels = ComparisonHC(3).fit_predict(ordered)
np.savez(path, ordered=ordered, asked=asked, said=said, test=test, group=group, score=score, ste=ste, labels=labels,
         hc=time.process_time() - began)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cblearn", metavar="PYTHON", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"{OBJECTS} objects, {TRIPLETS} noisy triplets; held-out score, adjusted Rand index, CPU seconds")
    ComparisonEmbedding(lambda1=1.0).fit([[0, 1, 2]])  # compile first
    for seed in range(given.seeds):
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            path = Path(folder) / "data.npz"
            subprocess.run(
                [given.cblearn, "-c", THEIRS, str(path), *map(str, (seed, OBJECTS, TRIPLETS))],
                check=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
            )
            z = dict(np.load(path))
            began = time.process_time()
            embedding = ComparisonEmbedding(2, random_state=seed).fit(z["ordered"])
            score, took = embedding.score(z["test"]), time.process_time() - began
            began = time.process_time()
            labels = ComparisonClustering(3, random_state=seed).fit_predict(z["ordered"])
            clustered = time.process_time() - began
            same = ComparisonClustering(3, random_state=seed).fit_predict(z["asked"], z["said"])
        hc, ours = (adjusted_rand_score(z["group"], found) for found in (z["labels"], labels))
        print(
            f"seed {seed}: ComparisonEmbedding {score:.3f} {took:.2f} s, "
            f"cblearn STE {float(z['score']):.3f} {float(z['ste']):.2f} s;  "
            f"ComparisonClustering {ours:.3f} {clustered:.2f} s "
            f"(list-boolean {adjusted_rand_score(z['group'], same):.3f}), "
            f"cblearn ComparisonHC {hc:.3f} {float(z['hc']):.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
