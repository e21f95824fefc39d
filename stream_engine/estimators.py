"""Estimators: river's conventions online, scikit-learn's for what is fitted on a whole list of comparisons.

Their code is in `stream_engine/api`.

Thin: an `Engine` counts, refits and kernels learn; nothing is computed here that is not computed there. Objects are
names for river's, numbers 0 ... n - 1 for scikit-learn's. Names here are loaded on use, so that the engine needs
neither library to start.
"""

from importlib import import_module

_PUBLIC = {
    "ComparisonClassifier": "stream_engine.api.online",
    "as_stream": "stream_engine.api.online",
    "ComparisonClustering": "stream_engine.api.clustering",
    "ComparisonEmbedding": "stream_engine.api.similarity",
    "ComparisonKernel": "stream_engine.api.similarity",
    "OrdinalEmbedding": "stream_engine.api.embedding",
    "triplets_as": "stream_engine.api.cblearn_formats",
    "TripletBoostClassifier": "stream_engine.api.boosting",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'stream_engine.estimators' has no attribute {name!r}")
