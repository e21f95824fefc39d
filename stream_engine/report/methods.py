"""How it was made: methods to cite, settings, versions."""

import platform
from importlib.metadata import version
from typing import Any

from stream_engine.data.version import installed_version
from stream_engine.report import Section, Table
from stream_engine.report.material import Material

CITED = {  # kind of artifact -> what was done, and whom to cite
    "embedding": (
        "embedding with a lapse rate for each participant, and weights on the axes if these predict better",
        "van der Maaten & Weinberger 2012, Stochastic triplet embedding (STE, t-STE); Carroll & Chang 1970, "
        "Analysis of individual differences in multidimensional scaling (weights)",
    ),
    "sdp_clustering": (
        "clustering by a semidefinite program on AddS similarities, number of clusters by SPUR",
        "Perrot, Esser & Ghoshdastidar 2020, Near-optimal comparison based clustering",
    ),
    "triplet_boost": (
        "classification by boosted triplet classifiers",
        "Perrot & von Luxburg 2019, Boosting for comparison-based learning",
    ),
    "kernel_learning": (
        "a kernel learned from comparisons and auxiliary kernels",
        "Heim, Valizadegan & Hauskrecht 2014, Relative comparison kernel learning with auxiliary kernels",
    ),
    "partial_order_embedding": (
        "multiple kernel partial order embedding",
        "McFee & Lanckriet 2011, Learning multi-modal similarity",
    ),
    "hierarchy": (
        "average and complete linkage on AddS, scored by the comparison-based revenue",
        "Mandal, Perrot & Ghoshdastidar 2023, A revenue function for comparison-based hierarchical clustering",
    ),
    "spectral": ("spectral clustering of AddS", "Perrot, Esser & Ghoshdastidar 2020"),
    "reliability": ("agreement of each participant with the others", "Dawid & Skene 1979"),
}
PACKAGES = ("numpy", "scipy", "numba")


def section(material: Material) -> Section:
    """Tables of methods, parameters and versions."""
    artifacts, snapshot = material.published.artifacts, material.snapshot
    made = [kind for kind in artifacts if kind in CITED]
    tables = []
    if made:
        methods = {
            "refit": made,
            "method": [CITED[kind][0] for kind in made],
            "cite": [CITED[kind][1] for kind in made],
            "snapshot": [artifacts[kind].sequence for kind in made],
            "seed": [artifacts[kind].seed for kind in made],
        }
        tables.append(Table("methods", methods))
    settings: dict[str, Any] = {
        f"{kind}.{name}": value for kind in sorted(artifacts) for name, value in sorted(artifacts[kind].params.items())
    }
    settings = {
        "accumulators": ", ".join(snapshot.settings["accumulators"]),
        "guard": snapshot.settings["guard"],
        **settings,
    }
    tables.append(
        Table("settings", {"setting": list(settings), "value": [_text(value) for value in settings.values()]})
    )
    versions = {"stream-engine": installed_version(), "Python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    tables.append(Table("versions", {"package": list(versions), "version": list(versions.values())}))
    says = (
        f"Generated from snapshot {snapshot.sequence} (digest {snapshot.digest[:12]}). "
        "The same answers, settings, seeds and versions give the same figures."
    )
    return Section("Methods and references", says, (), tuple(tables))


def _text(value: Any) -> str:
    return "chosen" if value is None else str(value)
