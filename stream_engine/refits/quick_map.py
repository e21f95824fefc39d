"""A first map while the embedding is being fitted: two dimensions, no cross-validation, marked as preliminary."""

from stream_engine.refits import CannotRefit, embedding
from stream_engine.state.artifact import PRELIMINARY
from stream_engine.state.published import Published

MAX_COMPARISONS = 1_000_000  # above which a map takes more than a second or so


def with_quick_map(published: Published) -> Published:
    """The published state with such an embedding if it has none yet, which takes a second for a survey. Unchanged if
    there are too many answers for that, or too few for a map."""
    if embedding.KIND in published.artifacts or published.snapshot.counters["comparisons"] > MAX_COMPARISONS:
        return published
    params = embedding.Params(dimensions=2, kernel="t-ste", ridge=1.0, lapse="none", participants="alike")
    try:
        artifact = embedding.refit(published.snapshot, params, 0, evaluate=False)
    except CannotRefit:
        return published
    artifact = artifact._replace(report={**artifact.report, PRELIMINARY: True})
    return published._replace(artifacts={**published.artifacts, embedding.KIND: artifact})
