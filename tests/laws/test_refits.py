"""Every registered refit keeps the laws: a new one is tested by being registered.

What a refit cannot do, and what makes it quick, is told in tests/refits/laws.py. The laws cannot tell whether a result
is right: certificates and planted answers are in the refits' own tests.
"""

from types import SimpleNamespace

import msgspec
import pytest

from stream_engine.refits import (
    NEEDED_ARTIFACT,
    REFITS,
    beta_choice,
    kernel_refits,
    no_progress,
    refit_module,
    spectral,
)
from stream_engine.state.artifact import Artifact
from stream_engine.testing import check_refit
from stream_engine.testing.refits import LAWS, SEED, as_bytes, planted
from tests.refits.laws import EXCLUDED, PARAMS
from tests.support.crafted_worlds import QUICK as QUICK_PARAMS

# The laws hold for either kernel, whenever a solver stops, after any number of rounds and whatever betas there are to
# choose from; what is chosen besides is chosen as by default.
QUICK_CHOICES = {
    "embedding": {"kernel": "ste"},
    "partial_order_embedding": {"tolerance": 1e-2},
    "triplet_boost": {"rounds": 3000},
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", REFITS)
def test_laws(name, law, monkeypatch):
    if reason := EXCLUDED.get(name, {}).get(law):
        pytest.skip(f"{name}: {reason}")
    monkeypatch.setattr(beta_choice, "MULTIPLES", (2.0, 8.0))
    monkeypatch.setattr(beta_choice, "MAX_STEPS_ABOVE", 1)
    monkeypatch.setattr(beta_choice, "MAX_STEPS_BELOW", 1)
    if law == "axes_are_declared":  # of arrays, which are the same without figures; those are most of a fit
        monkeypatch.setattr(kernel_refits.KernelEvaluation, "evaluate", lambda *_: None)
    check_refit(with_needed(name), (PARAMS | QUICK_CHOICES).get(name), only=law)


def with_needed(name: str):
    """The refit; where it needs another one, with a quick one of the same snapshot."""
    module = refit_module(name)
    if name not in NEEDED_ARTIFACT:
        return module

    def refit(snapshot, params, seed, previous=None, progress=no_progress):
        key = snapshot.digest, snapshot.objects
        if key not in QUICK:
            before = refit_module(NEEDED_ARTIFACT[name])
            QUICK[key] = before.refit(
                snapshot, msgspec.convert(QUICK_PARAMS[NEEDED_ARTIFACT[name]], before.Params), SEED
            )
        return module.refit(snapshot, params, seed, previous, progress, needed=QUICK[key])

    return SimpleNamespace(refit=refit, Params=module.Params, AXES=module.AXES)


QUICK: dict[tuple, Artifact] = {}


@pytest.mark.parametrize("kind", NEEDED_ARTIFACT)
def test_what_is_needed_is_made_where_it_is_not_given(kind):
    module, before, snapshot = refit_module(kind), refit_module(NEEDED_ARTIFACT[kind]), planted()
    needed = before.refit(snapshot, before.Params(), SEED)
    one, two = (
        module.refit(snapshot, module.Params(), SEED),
        module.refit(snapshot, module.Params(), SEED, needed=needed),
    )
    assert as_bytes(one) == as_bytes(two)


def test_every_exclusion_names_a_refit_and_a_law_and_a_reason():
    assert EXCLUDED.keys() | PARAMS.keys() <= set(REFITS)
    assert all(law in LAWS and len(reason) > 10 for told in EXCLUDED.values() for law, reason in told.items())


def spoiled(**changes):
    """The refit `spectral` with a fault: `changes` give fields of the artifact anew, from it and the snapshot."""

    def refit(snapshot, params, seed, previous=None, progress=None):
        made = spectral.refit(snapshot, params, seed)
        return made._replace(**{name: change(made, snapshot) for name, change in changes.items()})

    return SimpleNamespace(refit=refit, Params=spectral.Params, AXES=spectral.AXES)


CALLS: list[int] = []
SPOILED = {
    "pure": spoiled(report=lambda made, _: {**made.report, "calls": CALLS.append(0) or len(CALLS)}),
    "says_where_it_comes_from": spoiled(seed=lambda made, _: 0),
    "renamed_objects": spoiled(
        arrays=lambda made, snapshot: {
            **made.arrays,
            "eigenvalues": made.arrays["eigenvalues"] + len(snapshot.objects[0]),
        }
    ),
    "axes_are_declared": spoiled(arrays=lambda made, _: {**made.arrays, "more": made.arrays["labels"]}),
}


@pytest.mark.parametrize("law", SPOILED)
def test_a_refit_that_breaks_a_law_is_refused(law):
    check_refit(spectral, only=law)
    with pytest.raises((AssertionError, LookupError), match="broken law|more"):
        check_refit(SPOILED[law], only=law)
