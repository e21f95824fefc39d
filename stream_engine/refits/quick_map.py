"""A first map while the embedding is being fitted: two dimensions, no cross-validation, marked as preliminary."""

from stream_engine.refits import CannotRefit, embedding
from stream_engine.state.artifact import PRELIMINARY
from stream_engine.state.published import Published

MAX_COMPARISONS = 10_000_000  # above which reading them alone takes many seconds
SAMPLED_ANSWERS, SAMPLED_ANSWERS_PER_OBJECT = 300_000, 30  # that it is fitted to; the larger number counts


def with_quick_map(published: Published) -> Published:
    """The published state with such an embedding if it has none yet, which takes a second for a survey; of many
    answers, it is fitted to a sample. Unchanged if there are too many answers for that, or too few for a map."""
    if embedding.KIND in published.artifacts or published.snapshot.counters["comparisons"] > MAX_COMPARISONS:
        return published
    params = embedding.Params(dimensions=2, kernel="t-ste", ridge=1.0, lapse="none", participants="alike")
    try:
        max_answers = max(SAMPLED_ANSWERS, SAMPLED_ANSWERS_PER_OBJECT * len(published.snapshot.objects))
        artifact = embedding.refit(published.snapshot, params, 0, evaluate=False, max_answers=max_answers)
    except CannotRefit:
        return published
    artifact = artifact._replace(report={**artifact.report, PRELIMINARY: True})
    return published._replace(artifacts={**published.artifacts, embedding.KIND: artifact})
