"""The program that a refit publishes, by the engine's solver or by cvxpy, whichever is asked for or comes closer."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from stream_engine.data.available_memory import TooLarge
from stream_engine.data.interior_point import NotSolved
from stream_engine.refits import CannotRefit, Progress

Solver = Literal["engine", "cvxpy"]


class Proven(Protocol):
    """A solution with a bound on how far it is from the optimum."""

    @property
    def gap(self) -> float: ...


Solved = TypeVar("Solved", bound=Proven)


class Watched:
    """A progress callback; `ended`: it has asked for the best that there is."""

    def __init__(self, progress: Progress):
        self._progress, self.ended = progress, False

    def __call__(self, done: int, total: int, **figures: Any) -> bool:
        self.ended |= bool(self._progress(done, total, **figures))
        return self.ended


def solved(
    kind: str,
    solver: Solver,
    engine: Callable[[Progress], Solved],
    cvxpy: Callable[[], Solved],
    is_good: Callable[[Solved], bool],
    progress: Progress,
) -> tuple[Solved, Solver]:
    """The solution, and which solver it is from.

    Where the engine's misses its tolerance, and `progress` did not end it, cvxpy is tried; of the two the one with the
    smaller gap counts. Raises `CannotRefit` where cvxpy is asked for and cannot solve it.
    """
    if solver == "cvxpy":
        try:
            return cvxpy(), "cvxpy"
        except (TooLarge, NotSolved) as error:
            raise CannotRefit(f"{kind}: {error}") from None
    watched = Watched(progress)
    own = engine(watched)
    if is_good(own) or watched.ended:
        return own, "engine"
    try:
        other = cvxpy()
    except (TooLarge, NotSolved):
        return own, "engine"
    return (other, "cvxpy") if other.gap < own.gap else (own, "engine")
