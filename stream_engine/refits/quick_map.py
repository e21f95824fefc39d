"""A first map while the embedding is being fitted: two dimensions, no cross-validation, marked as preliminary."""

from stream_engine.refits import CannotRefit, embedding
from stream_engine.state.artifact import PRELIMINARY
from stream_engine.state.published import Published

MOST = 1_000_000  # comparisons, above which a map takes more than a moment


def with_quick_map(published: Published) -> Published:
    """With such an embedding where there is none yet; that takes a second for a survey. Unchanged where there are too
    many answers for that, or too few for a map."""
    if embedding.KIND in published.artifacts or published.snapshot.counters["comparisons"] > MOST:
        return published
    params = embedding.Params(dimensions=2, kernel="t-ste", ridge=1.0, lapse="none", participants="alike")
    try:
        made = embedding.refit(published.snapshot, params, 0, evaluate=False)
    except CannotRefit:
        return published
    made = made._replace(report={**made.report, PRELIMINARY: True})
    return published._replace(artifacts={**published.artifacts, embedding.KIND: made})
