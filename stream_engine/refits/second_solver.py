"""The published program, solved by the engine's solver or by cvxpy: the requested one, or the one that comes closer."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from stream_engine.data.available_memory import TooLarge
from stream_engine.data.interior_point import NotSolved
from stream_engine.refits import CannotRefit, Progress

Solver = Literal["engine", "cvxpy"]


class BoundedSolution(Protocol):
    """A solution with a bound on how far it is from the optimum."""

    @property
    def gap(self) -> float: ...


Solved = TypeVar("Solved", bound=BoundedSolution)


class EndableProgress:
    """A progress callback that remembers in `ended` whether it has asked for an early end."""

    def __init__(self, progress: Progress):
        self._progress, self.ended = progress, False

    def __call__(self, done: int, total: int, **figures: Any) -> bool:
        self.ended |= bool(self._progress(done, total, **figures))
        return self.ended


def solve_by(
    kind: str,
    solver: Solver,
    engine: Callable[[Progress], Solved],
    cvxpy: Callable[[], Solved],
    is_good: Callable[[Solved], bool],
    progress: Progress,
) -> tuple[Solved, Solver]:
    """`(the solution, its solver)`.

    If the engine's solution misses its tolerance, and `progress` did not end it, cvxpy is tried; of the two, the one
    with the smaller gap is returned. Raises `CannotRefit` if cvxpy is requested and cannot solve the program.
    """
    if solver == "cvxpy":
        try:
            return cvxpy(), "cvxpy"
        except (TooLarge, NotSolved) as error:
            raise CannotRefit(f"{kind}: {error}") from None
    endable = EndableProgress(progress)
    engine_solution = engine(endable)
    if is_good(engine_solution) or endable.ended:
        return engine_solution, "engine"
    try:
        cvxpy_solution = cvxpy()
    except (TooLarge, NotSolved):
        return engine_solution, "engine"
    return (cvxpy_solution, "cvxpy") if cvxpy_solution.gap < engine_solution.gap else (engine_solution, "engine")
