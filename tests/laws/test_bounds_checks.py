"""The compiled kernels of the hot path once more, with numba's bounds checks on: an index out of range is an error.

Without the checks it reads or writes a neighbour's memory and may change nothing that a test looks at. A second pytest
runs a few small tests that reach every kernel of the rooms below. Its compiled code is kept beside that without checks
(`data/kernel_cache.py`): compiling takes most of the time.
"""

import ast
import os
import re
import subprocess
import sys

from tests.conftest import ROOT

ROOMS = (
    "order",
    "boosting",
    "formats",
    "embedding",
    "evaluation/answer_probabilities.py",
    "asking",
    "counts/gram_matrices.py",
    "counts/kernels.py",
    "counts/landmark_designs.py",
    "counts/adds_similarity.py",
    "counts/radix.py",
    "counts/sorted_counts.py",
    "counts/triplet_counts.py",
    "counts/quadruplet_counts.py",
    "counts/judgement_kernels.py",
)
FILES = (
    "state/test_engine.py",
    "formats/test_expansion.py",
    "counts/test_triplet_counts.py",
    "counts/test_judgements.py",
    "order/test_partial_order.py",
    "order/test_canonical_order.py",
    "order/test_transitive_reduction.py",
    "order/test_implied.py",
    "evaluation/test_kernels.py",
    "evaluation/test_landmark_designs.py",
    "boosting/test_triplet_boost.py",
    "embedding/test_gradient.py",
    "embedding/test_fit.py",
    "embedding/test_individual.py",
    "embedding/test_neighbour_layout.py",
    "embedding/test_posterior.py",
    "embedding/test_sparse_fit.py",
    "asking/test_ensemble.py",
    "embedding/test_ellipses.py",
    "embedding/test_online.py",
    "boosting/test_exact_rounds.py",
    "boosting/test_theorems.py",
    "laws/test_formats.py",
    "formats/test_json_scan.py",
)
TESTS = (
    "finished_while",
    "kinds_mixed",
    "plain_triplets",
    "small_event and pick",
    "no_overflow",
    "quadruplet_keys",
    "promoted",
    "radix_sort",
    "argsort",
    "n_squared",
    "every_cut",
    "long_chains",
    "denser_worlds",
    "arrival_order",
    "net_votes_and_weight",
    "is_its_definition and reduction",
    "against_the_closure",
    "a_sample_is_said",
    "one_path_by_hand",
    "net_votes_of_each_row",
    "row_by_row and 11",
    "kernel_is_the_formula",
    "blas_blocks",
    "mulk4",
    "going_on_equals",
    "compaction_keeps",
    "equation_5",
    "artifacts_arrays",
    "formats_agree",
    "any_order_of_events",
    "threshold_falls",
    "likelihood_is_the_formula",
    "weights_of_1_are_one_map",
    "stretched_map",
    "coefficients_stay",
    "stochastic_step",
    "best_one_that_the_quota",
    "own_block",
    "slopes_are_those",
    "points_in_one_place",
    "same_seed_gives_the_same_draws",
    "losses_and_the_likeliest",
    "gradient_is_that_of_finite",
    "covariance_is_the_formula",
    "fisher_information",
    "same_fit_twice",
    "means_over_the_samples",
    "kalman",
    "narrow_features",
    "online_steps",
    "online_blocks",
    "online_new_objects",
    "online_no_answer",
    "json_scan",
)
# Run at the end of that pytest: which kernels were compiled. Code that is not optimised checks the same bounds, and is
# compiled in two thirds of the time; what numba then says it cannot keep is compiled again, no more. To look for cycles
# in what the compiler makes would take a tenth of it.
COMPILED = """
import gc, sys

gc.disable()

def pytest_sessionfinish(session):
    from numba.core.registry import CPUDispatcher
    names = {f"{module.__name__.rpartition('.')[2]}.{each.__name__}" for module in list(sys.modules.values())
             if module.__name__.startswith("stream_engine") for each in vars(module).values()
             if isinstance(each, CPUDispatcher) and each.__module__ == module.__name__ and each.signatures}
    print("\\ncompiled:", *sorted(names))
"""
FLAGS = {
    "NUMBA_BOUNDSCHECK": "1",
    "NUMBA_OPT": "0",
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
    "OPENBLAS_NUM_THREADS": "1",
}


def kernels() -> set[str]:
    """file.function of every compiled function of these rooms that is compiled by itself."""
    found = set()
    for room in ROOMS:
        for path in (
            [ROOT / "stream_engine" / room] if room.endswith(".py") else (ROOT / "stream_engine" / room).glob("*.py")
        ):
            for node in ast.walk(ast.parse(path.read_text())):
                decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
                if any("njit" in each and "inline" not in each for each in decorators):
                    found.add(f"{path.stem}.{node.name}")
    return found


def test_no_kernel_leaves_its_arrays(tmp_path, record_property):
    (tmp_path / "compiled_by_then.py").write_text(COMPILED)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"),
        *("-p", "compiled_by_then", "-W", "ignore:Cannot cache compiled function"),
        *(f"tests/{file}" for file in FILES),
        "-k",
        " or ".join(f"({test})" for test in TESTS),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {**FLAGS, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and passed, done.stdout[-3000:] + done.stderr[-1000:]
    compiled = set(re.search(r"^compiled: (.*)", done.stdout, re.M)[1].split())
    assert not kernels() - compiled, f"never run with bounds checks: {sorted(kernels() - compiled)}"
    record_property("with_bounds_checks", int(passed[1]))
