"""A feature set as it is, as a predictor of what a stream brings next."""

import numpy as np

from stream_engine.alignment.feature_files import FeatureSpec, read
from stream_engine.alignment.feature_sets import METRIC, MIN_OBJECTS, joined
from stream_engine.data.triplet_columns import net_triplets
from stream_engine.evaluation import Predictor
from stream_engine.evaluation.learned import by_factor
from stream_engine.state.snapshot import Snapshot, triplet_columns

SAMPLE_QUESTIONS = 20_000  # questions that choose the measure


def as_it_is(snapshot: Snapshot, name: str, spec: FeatureSpec) -> Predictor | None:
    """By cosine or by Euclidean distance, whichever agrees with more majorities so far; None for fewer than three
    objects. Raises `BadFeatures`."""
    if len(snapshot.objects) < MIN_OBJECTS:
        return None
    ids, (only,) = joined({name: read(name, spec)}, snapshot.objects)
    has_features = np.zeros(len(snapshot.objects), bool)
    has_features[ids] = True
    triplets = net_triplets(triplet_columns(snapshot))[0]
    rows = triplets[:: max(1, len(triplets) // SAMPLE_QUESTIONS)][:, [0, 1, 0, 2]].astype(np.int32)
    predictors = []
    for measure in METRIC:
        points = np.zeros((len(has_features), only.values.shape[1]), only.values.dtype)
        points[ids] = only.points(measure).x
        margins = by_factor(points, has_features)
        finite = margins(rows)
        finite = finite[np.isfinite(finite)]
        scale = float(np.sqrt(np.mean(finite**2))) if len(finite) else 1.0
        predictors.append((float((finite > 0).sum()), Predictor(margins, scale or 1.0)))
    return max(predictors, key=lambda item: item[0])[1]
