"""Every registered name imports."""

from importlib import import_module

import pytest

import connectors
from stream_engine import asking, counts, evaluation, exports, formats, refits
from tests.support.facts import stating

REGISTRIES = {
    "connectors.SOURCES": connectors.SOURCES,
    "formats.FORMATS": formats.FORMATS,
    "counts.ACCUMULATORS": counts.ACCUMULATORS,
    "refits.REFITS": refits.REFITS,
    "exports.EXPORTS": exports.EXPORTS,
    "evaluation.PREDICTORS": evaluation.PREDICTORS,
    "asking.STRATEGIES": asking.STRATEGIES,
}


def entries():
    for registry, names in REGISTRIES.items():
        for name, target in names.items():
            yield pytest.param(target, id=f"{registry}[{name}]")


@pytest.mark.parametrize("target", list(entries()))
def test_registered_names_import(target):
    module, _, attribute = target.partition(":")
    found = import_module(module)
    assert not attribute or hasattr(found, attribute)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(connectors.UnusableSource, match=stating("'ftp' … file")):
        connectors.open_source("ftp://x", {})
