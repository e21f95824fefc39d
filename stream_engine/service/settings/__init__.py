"""One TOML file, the environment and the command line become one frozen `Settings`; rooms receive plain arguments.

`schema` says what can be set, `precedence` what wins, `secrets` what is never shown, `relative_paths` where files
are looked for, `refit_params` what a refit is told, `problems` how what is wrong is said.
"""

from stream_engine.service.settings.choices import NO_GUARD
from stream_engine.service.settings.precedence import ENVIRONMENT, load, shown
from stream_engine.service.settings.problems import BadSettings
from stream_engine.service.settings.refit_params import params_of, refit_params
from stream_engine.service.settings.schema import (
    CountSettings,
    DriftSettings,
    ForgettingSettings,
    GuardSettings,
    HttpSettings,
    Input,
    LogSettings,
    OnlineSettings,
    RefitSettings,
    Settings,
    SnapshotSettings,
)
from stream_engine.service.settings.secrets import HIDDEN
from stream_engine.service.settings.texts import mapping, put, shard, toml_value

__all__ = [
    "ENVIRONMENT",
    "HIDDEN",
    "NO_GUARD",
    "BadSettings",
    "CountSettings",
    "DriftSettings",
    "ForgettingSettings",
    "GuardSettings",
    "HttpSettings",
    "Input",
    "LogSettings",
    "OnlineSettings",
    "RefitSettings",
    "Settings",
    "SnapshotSettings",
    "load",
    "mapping",
    "params_of",
    "put",
    "refit_params",
    "shard",
    "shown",
    "toml_value",
]
