"""Estimators: river's conventions online, scikit-learn's for what is fitted on a whole list of comparisons.

Their code is in `stream_engine/api`.

Thin: an `Engine` counts, refits and kernels learn; nothing is computed here that is not computed there. Objects are
names for river's, numbers 0 ... n - 1 for scikit-learn's. Names here are loaded on use, so that the engine needs
neither library to start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in `_PUBLIC`, for type checkers and completion
    from stream_engine.api.boosting import TripletBoostClassifier
    from stream_engine.api.clustering import ComparisonClustering
    from stream_engine.api.embedding import OrdinalEmbedding
    from stream_engine.api.online import ComparisonClassifier, as_stream
    from stream_engine.api.similarity import ComparisonEmbedding, ComparisonKernel

_PUBLIC = {
    "ComparisonClassifier": "stream_engine.api.online",
    "as_stream": "stream_engine.api.online",
    "ComparisonClustering": "stream_engine.api.clustering",
    "ComparisonEmbedding": "stream_engine.api.similarity",
    "ComparisonKernel": "stream_engine.api.similarity",
    "OrdinalEmbedding": "stream_engine.api.embedding",
    "TripletBoostClassifier": "stream_engine.api.boosting",
}
__all__ = [
    "ComparisonClassifier",
    "ComparisonClustering",
    "ComparisonEmbedding",
    "ComparisonKernel",
    "OrdinalEmbedding",
    "TripletBoostClassifier",
    "as_stream",
]


if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error

    def __getattr__(name: str) -> Any:
        if name in _PUBLIC:
            return getattr(import_module(_PUBLIC[name]), name)
        raise AttributeError(f"module 'stream_engine.estimators' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
