"""One TOML file, the environment and the command line become one frozen `Settings`; rooms receive plain arguments.

The door of this room: `schema` says what can be set, `loading` what wins and what a refit is told, `secrets` what is
never shown, `problems` how what is wrong is said.
"""

from stream_engine.service.settings.loading import (
    ENVIRONMENT,
    HIDDEN,
    BadSettings,
    hidden,
    hidden_secret,
    load,
    mapping,
    params_of,
    put,
    refit_params,
    shard,
    shown,
    toml_value,
)
from stream_engine.service.settings.schema import (
    CountSettings,
    DriftSettings,
    ForgettingSettings,
    HttpSettings,
    Input,
    LogSettings,
    OnlineSettings,
    RefitSettings,
    Settings,
    SnapshotSettings,
)

__all__ = [
    "ENVIRONMENT",
    "HIDDEN",
    "BadSettings",
    "CountSettings",
    "DriftSettings",
    "ForgettingSettings",
    "HttpSettings",
    "Input",
    "LogSettings",
    "OnlineSettings",
    "RefitSettings",
    "Settings",
    "SnapshotSettings",
    "hidden",
    "hidden_secret",
    "load",
    "mapping",
    "params_of",
    "put",
    "refit_params",
    "shard",
    "shown",
    "toml_value",
]
