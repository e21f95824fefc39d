"""cvxpy with its interior-point solver Clarabel: a second opinion on small convex programs (`clustering.sdp_by_cvxpy`,
`kernel_learning.programs`), which import cvxpy only when a program is to be solved, since that takes a second."""

import warnings
from typing import Any

from stream_engine.data.available_memory import TooLarge

ACCURACY = 1e-9  # relative, that is asked of Clarabel; it stops earlier where rounding lets it come no further


class NotSolved(RuntimeError):
    """cvxpy found no solution; the message is one line."""


def require_at_most(program: str, size: int, limit: int, next_step: str) -> None:
    """Raise `TooLarge` for a program above the size that an interior-point method can solve.

    >>> require_at_most("an SDP", 300, 100, "use solver 'engine'")
    Traceback (most recent call last):
        ...
    stream_engine.data.available_memory.TooLarge: an SDP by cvxpy: got 300, expected at most 100 - use solver 'engine'
    """
    if size > limit:
        raise TooLarge(f"{program} by cvxpy: got {size:,}, expected at most {limit:,} - {next_step}")


def solve(problem: Any, accuracy: float = ACCURACY) -> int:
    """Solve a `cvxpy.Problem`, whose variables then have values; the number of iterations. Raises `NotSolved`."""
    import cvxpy

    options = dict.fromkeys(("tol_gap_rel", "tol_gap_abs", "tol_feas"), accuracy)
    with warnings.catch_warnings():  # how accurate it is, the caller computes
        warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
        try:
            problem.solve(solver=cvxpy.CLARABEL, **options)
        except cvxpy.error.SolverError as error:
            raise NotSolved(f"cvxpy: {error}".splitlines()[0]) from None
    if problem.status not in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE):
        raise NotSolved(f"cvxpy: status {problem.status}, expected {cvxpy.OPTIMAL}")
    return int(problem.solver_stats.num_iters)
