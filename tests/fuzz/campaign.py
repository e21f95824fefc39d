"""One target's inputs, one after the other: checked, counted, and where one fails made smaller and kept.

Deterministic: input `number` of a target depends on the seed, the target's name and the number alone.
"""

import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import ModuleType
from typing import NamedTuple

from tests.fuzz.mutations import kept_cases
from tests.fuzz.targets import target

SECONDS = 60  # an input that takes longer hangs


class Failure(NamedTuple):
    """What failed: which input, with what, and a smaller one that fails in the same way."""

    target: str
    seed: int
    number: int  # -1 - i: case i of the corpus
    data: bytes
    smaller: bytes
    error: str

    def repeats(self) -> str:
        """The command that runs this input again."""
        return f"python -m tests.fuzz --target {self.target} --seed {self.seed} --only {self.number}"


def input_of(name: str, seed: int, number: int) -> bytes:
    """An input by its number; negative: a case of the corpus."""
    if number < 0:
        return kept_cases(name)[-1 - number]
    return target(name).make(Random(f"{seed}/{name}/{number}"))


def campaign(name: str, seed: int, numbers: Iterator[int], until: float | None = None, begun=None):
    """Yields `(number, what became of it, Failure or None)`; `begun(number)` is told before each."""
    module = target(name)
    for number in numbers:
        if until is not None and time.monotonic() > until:
            return
        if begun:
            begun(number)
        data = input_of(name, seed, number)
        try:
            yield number, checked(module, data), None
        except Exception as error:
            told = "".join(traceback.format_exception(error))
            yield number, "FAILED", Failure(name, seed, number, data, _smaller(module, data, error), told)


def checked(module: ModuleType, data: bytes) -> str:
    """What becomes of an input; `TimeoutError` for one that hangs."""
    with _alarm():
        return module.check(data)


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError(f"an input took over {SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _smaller(module: ModuleType, data: bytes, error: Exception, tries: int = 300) -> bytes:
    """The input with pieces left out, as long as the same kind of failure stays; halves first, then single bytes."""
    if isinstance(error, TimeoutError):
        return data
    fails = _fails_alike(module, error)
    size = len(data) // 2
    while size and tries > 0:
        at = 0
        while at < len(data) and tries > 0:
            tries -= 1
            candidate = data[:at] + data[at + size :]
            if fails(candidate):
                data = candidate
            else:
                at += size
        size //= 2
    return data


def _fails_alike(module: ModuleType, error: Exception) -> Callable[[bytes], bool]:
    where = _place(error)

    def fails(data: bytes) -> bool:
        try:
            checked(module, data)
        except Exception as other:
            return _place(other) == where
        return False

    return fails


def _place(error: Exception) -> tuple[str, str, int | None]:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return type(error).__name__, last.filename, last.lineno


def kept(failure: Failure, folder: Path) -> Path:
    """Write a failure down: the input, the smaller one, and how to repeat it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.target}-{failure.seed}-{failure.number}"
    path.write_bytes(failure.data)
    Path(f"{path}.smaller").write_bytes(failure.smaller)
    Path(f"{path}.txt").write_text(f"{failure.repeats()}\n\n{failure.error}\n{failure.smaller!r}\n", errors="replace")
    return path


def tally(name: str, seed: int, numbers: Iterator[int]) -> tuple[Counter[str], list[Failure]]:
    """A whole campaign in this process: what became of the inputs, and the failures."""
    became: Counter[str] = Counter()
    failures = []
    for _, word, failure in campaign(name, seed, numbers):
        became[word] += 1
        if failure is not None:
            failures.append(failure)
    return became, failures
