"""Which compiled functions the tests have run, and which they must."""

import ast
import sys
from collections.abc import Iterator
from types import CodeType

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


def kernels() -> set[str]:
    """file.function of every function of these rooms that is compiled by itself."""
    found = set()
    for room in ROOMS:
        place = ROOT / "stream_engine" / room
        for path in [place] if place.suffix else place.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
                if any("njit" in each and "inline" not in each for each in decorators):
                    found.add(f"{path.stem}.{node.name}")
    return found


def reached() -> set[str]:
    """Those that were called in this process, and all that these call."""
    if "numba" not in sys.modules:
        return set()
    from numba.core.registry import CPUDispatcher

    modules = [module for name, module in list(sys.modules.items()) if name.startswith("stream_engine")]
    todo = [each for module in modules for each in vars(module).values()]
    todo = [each for each in todo if isinstance(each, CPUDispatcher) and each.signatures]
    found = {}
    while todo:
        kernel = todo.pop()
        if kernel not in found:
            found[kernel] = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}"
            named = (kernel.py_func.__globals__.get(name) for name in _names(kernel.py_func.__code__))
            todo += [each for each in named if isinstance(each, CPUDispatcher)]
    return set(found.values())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
