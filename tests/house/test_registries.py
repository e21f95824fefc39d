"""Every file in a growth folder is registered, and every registered name imports."""

from importlib import import_module
from pathlib import Path

import pytest

import connectors
from stream_engine import asking, counts, evaluation, exports, formats, refits
from tests.conftest import ROOT
from tests.support.facts import stating

REGISTRIES = {
    "connectors.SOURCES": connectors.SOURCES,
    "connectors.SINKS": connectors.SINKS,
    "formats.FORMATS": formats.FORMATS,
    "counts.ACCUMULATORS": counts.ACCUMULATORS,
    "refits.REFITS": refits.REFITS,
    "exports.EXPORTS": exports.EXPORTS,
    "evaluation.PREDICTORS": evaluation.PREDICTORS,
    "asking.STRATEGIES": asking.STRATEGIES,
}
# Files of a growth folder that hold no entry of their own, with the reason.
SHARED = {
    "formats": {
        "arrow_columns",
        "event_block",
        "event_columns",
        "arrow_bounds",
        "event_fields",
        "event_messages",
        "expand",
        "expand_in_pieces",
        "field_values",
        "joined_blocks",
        "inference",
        "record_columns",
        "record_kinds",
        "roles",
        "wide_columns",
        "json_places",
        "json_scan",
        "options",
        "table_events",
        "text_values",
        "validate",
    },
    "counts": {
        "confidence",
        "feature_space",
        "gram_matrices",
        "kernels",
        "landmark_designs",
        "spectral",
        "radix",
        "sorted_counts",
        "float_sums",
        "removal",
        "common_sums",
        "judgement_kernels",
        "judgement_states",
    },
    "refits": {
        "beta_choice",
        "classify_views",
        "cluster_verdict",
        "held_out_answers",
        "kernel_refits",
    },
    "exports": {
        "files",
        "declarations",
        "naming",
        "object_places",
        "object_table",
    },
    "evaluation": {
        "answer_probabilities",
        "connection",
        "coordinates",
        "cross_fit",
        "hash_split",
        "held_out",
        "judgement_folds",
        "participants",
        "response_checks",
        "subset",
        "weighted_counts",
        "worker_reliability",
        "answering",
        "questions",
        "drift",
        "observer",
        "probability",
    },
    "asking": {"as_events", "ensemble", "known", "model", "queue", "sharing"},
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


@pytest.mark.parametrize("folder", SHARED)
def test_no_file_is_forgotten(folder):
    registered = {
        target.partition(":")[0].rpartition(".")[2] for names in REGISTRIES.values() for target in names.values()
    }
    files = {path.stem for path in (ROOT / "stream_engine" / folder).glob("*.py")} - {"__init__"}
    forgotten = files - registered - SHARED[folder]
    assert not forgotten, f"register {sorted(forgotten)} in stream_engine/{folder}/__init__.py, or list it as shared"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(connectors.UnusableSource, match=stating("'ftp' … file")):
        connectors.open_source("ftp://x", {})


def test_growth_folders_exist():
    assert all(Path(ROOT / "stream_engine" / folder).is_dir() for folder in SHARED)
