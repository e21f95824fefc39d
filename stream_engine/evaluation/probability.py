"""P(d(i, j) < d(k, l)), the probability that a participant finds i and j more alike than k and l: the models of a
state.

    embedding                  lapse / 2 + (1 - lapse) sigma(scale Delta), its own formula for an unknown participant;
    for
                               few answers the mean of that over draws (`embedding.posterior`)
    dimensions                 sigma(s_ij - s_kl), s the dot products of its weights; only of pairs that share an object
    kernel_learning            sigma(slope Delta), Delta the difference of squared distances; slope Platt's, fitted by
    partial_order_embedding    the refit to responses that it held out; if there are none, 1 for STE, a likelihood
    adds3, k1, k2              sigma(w . phi(margin)): Platt's logistic fit (`platt`), on held-out responses

Turning a question round turns the probability round: P(a; b, c) = 1 - P(a; c, b).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.evaluation import FEATURE_MODEL, PROBABILITY_MODELS, NoModel, Probability
from stream_engine.evaluation.count_models import calibration_of, similarity_of
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.learned import (
    kernel_learning,
    of_dimensions,
    of_embedding,
    of_features,
    partial_order_embedding,
)
from stream_engine.evaluation.platt import platt, sigmoid_of
from stream_engine.state.artifact import Artifact, figure, is_of_subset
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

COUNTED = ("adds3", "k1", "k2")  # models that are nothing but counts, made when they are asked for
MODELS = (*PROBABILITY_MODELS, FEATURE_MODEL, *COUNTED)


class Model(NamedTuple):
    """`probability` takes (m, 4) rows i, j, k, l and gives (m,) P(d(i, j) < d(k, l)), NaN where the model does not know
    an object, or is not for questions about four. `log_loss` (nats an answer) is that of held-out responses, None if
    too few were held out."""

    name: str
    probability: Probability
    log_loss: float | None = None
    new_objects: tuple[str, ...] = ()  # objects without comparisons, whose ids follow those of the snapshot


def model(published: Published, name: str | None = None) -> Model:
    """The model of that name; without a name the one of the artifacts with the least held-out log loss, or AddS-3 where
    no artifact gives probabilities. Raises `NoModel`."""
    if name is not None:
        if (chosen := _model_of(published, name)) is None:
            raise NoModel(f"model {name!r}: {_why_missing(published, name)}")
        return chosen
    best_model = best(published) or _of_artifact(published, FEATURE_MODEL) or _model_of(published, "adds3")
    if best_model is None:
        raise NoModel("no model in this state gives probabilities; next: `stream-engine refit --state DIR embedding`")
    return best_model


def _why_missing(published: Published, name: str) -> str:
    """Why the state has no such model, and what to do."""
    if name in (*PROBABILITY_MODELS, FEATURE_MODEL):
        available = [kind for kind in (*PROBABILITY_MODELS, FEATURE_MODEL) if _of_artifact(published, kind)]
        return (
            f"this state has no {name}; expected one of {', '.join((*available, *COUNTED))}, next: `stream-engine "
            f"refit --state DIR {name}`"
        )
    if name not in MODELS:
        return f"expected one of {', '.join(MODELS)}"
    return f"it needs triplets about at most {DENSE_LIMIT} objects, and there are none without ties"


def best(published: Published) -> Model | None:
    """The model with the least held-out log loss among the artifacts that give probabilities; one that was tested on a
    subset of the objects only if there is no other. None if there are none."""
    models = [candidate for name in PROBABILITY_MODELS if (candidate := _of_artifact(published, name))]

    def rank(candidate: Model) -> tuple[bool, float]:
        loss = np.inf if candidate.log_loss is None else candidate.log_loss
        return is_of_subset(published.artifacts[candidate.name]), loss

    return min(models, key=rank, default=None)


def _model_of(published: Published, name: str) -> Model | None:
    return count_model(published.snapshot, name)[0] if name in COUNTED else _of_artifact(published, name)


def _of_artifact(published: Published, name: str) -> Model | None:
    artifact = published.artifacts.get(name)
    if artifact is None:
        return None
    if name == FEATURE_MODEL:
        return by_features(published)
    if name == "embedding":
        probability = of_embedding(artifact)
    elif name == "dimensions":
        if figure(artifact.report, "log_loss") is None:
            return None
        probability = of_dimensions(np.asarray(artifact.arrays["X"]), np.asarray(artifact.arrays["asked"], bool))
    else:
        distances = {"kernel_learning": kernel_learning, "partial_order_embedding": partial_order_embedding}.get(name)
        predictor, slope = distances(published) if distances else None, _slope(artifact)
        if predictor is None or slope is None:
            return None
        probability = sigmoid_of(predictor, slope)
    return Model(name, probability, figure(artifact.report, "log_loss"))


def by_features(published: Published) -> Model | None:
    """The model that predicts by features of the objects, also of objects without answers; None without its
    artifact."""
    if (features := of_features(published)) is None:
        return None
    probability, new_objects = features
    log_loss = figure(published.artifacts[FEATURE_MODEL].report, "log_loss")
    return Model(FEATURE_MODEL, probability, log_loss, new_objects)


def _slope(artifact: Artifact) -> float | None:
    """The slope of the report; without one, 1 if the loss is a likelihood, whose margins are log odds."""
    slope = figure(artifact.report, "probability_slope")
    return 1.0 if slope is None and artifact.report.get("loss") == "ste" else slope


def count_model(snapshot: Snapshot, name: str, seed: int = 0) -> tuple[Model | None, HeldOut | None]:
    """AddS-3, k1 or k2 with its probabilities, and its figures on responses that neither its counts nor its calibration
    contain; None if no question has a majority. Three times the similarity's cost."""
    predictor = similarity_of(snapshot, name)
    if predictor is None:
        return None, None
    calibration, figures = calibration_of(snapshot, name, seed)
    log_loss = figures.judgement.log_loss if figures and figures.judgement else None
    return Model(name, platt(predictor, calibration), log_loss), figures
