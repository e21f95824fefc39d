"""The engine as estimators: river's conventions online, scikit-learn's for what is fitted on a whole list of
comparisons.

Thin: an `Engine` counts, refits and kernels learn; nothing is computed here that is not computed there. Objects are
names for river's, numbers 0 ... n - 1 for scikit-learn's. Names here are loaded on use, so that the engine needs
neither library to start.
"""

from importlib import import_module

_PUBLIC = {
    "ComparisonClassifier": "stream_engine.estimators.online",
    "as_stream": "stream_engine.estimators.online",
    "ComparisonClustering": "stream_engine.estimators.clustering",
    "ComparisonEmbedding": "stream_engine.estimators.similarity",
    "ComparisonKernel": "stream_engine.estimators.similarity",
    "OrdinalEmbedding": "stream_engine.estimators.embedding",
    "triplets_as": "stream_engine.estimators.cblearn_formats",
    "TripletBoostClassifier": "stream_engine.estimators.boosting",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'stream_engine.estimators' has no attribute {name!r}")
