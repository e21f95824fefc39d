"""Parameters of refits in the settings, checked against the refit's own `Params`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stream_engine.alignment.feature_files import SUFFIXES as FEATURE_SUFFIXES
from stream_engine.alignment.feature_files import FeatureSpec
from stream_engine.evaluation import FEATURE_MODEL
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.conversion import convert, nearest
from stream_engine.kernel_learning.auxiliary_files import NO_FILE, SUFFIXES, KernelSpec
from stream_engine.refits import REFITS, former, refit_module


def params_of(settings: Settings, kind: str, table: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The parameters of a refit as plain values: its `table` (by default, that of the settings), with [kernels] or
    [features] of the settings.

    [kernels] are added if the refit takes auxiliary kernels and its table names neither kernels nor features nor a form
    without them, [features] if the refit is about feature sets.
    """
    params = dict(settings.refits.params.get(kind, {}) if table is None else table)
    fields = {f.encode_name for f in msgspec.structs.fields(refit_module(kind).Params)}
    takes = "kernels" in fields and params.get("form") != "order"
    if settings.kernels and takes and not {"kernels", "features"} & params.keys():
        params["kernels"] = msgspec.to_builtins(settings.kernels)
    if settings.features and kind == FEATURE_MODEL and "features" not in params:
        params["features"] = msgspec.to_builtins(settings.features)
    return params


def refit_params(kind: str, values: Mapping[str, Any]) -> Struct:
    """The checked `Params` of a refit. Raises `BadSettings`."""
    if kind not in REFITS:
        raise BadSettings(f"refits.params.{kind}: unknown refit{nearest(kind, REFITS)}")
    for name in sorted(former(kind).keys() & values.keys()):
        raise BadSettings(f"refits.params.{kind}.{name}: no longer a parameter: {former(kind)[name]}")
    params: Struct = convert(values, refit_module(kind).Params, "", f"refits.params.{kind}")
    check_kernel_files(getattr(params, "kernels", {}), f"refits.params.{kind}.kernels")
    if kind == FEATURE_MODEL:
        check_kernel_files(getattr(params, "features", {}), f"refits.params.{kind}.features", FEATURE_SUFFIXES)
    return params


def check_kernel_files(
    kernels: Mapping[str, KernelSpec | FeatureSpec], where: str, suffixes: tuple[str, ...] = SUFFIXES
) -> None:
    """Raise `BadSettings` unless the files of [kernels] or [features] exist and have a known suffix."""
    for name, spec in kernels.items():
        for key, file in (("file", spec.file), ("objects", spec.objects)):
            if file is not None and not Path(file).is_file():
                raise BadSettings(f"{where}.{name}.{key}: got {file!r}, {NO_FILE}")
        if not spec.file.endswith(suffixes):
            raise BadSettings(
                f"{where}.{name}.file: got {spec.file!r}, expected a name ending in {', '.join(suffixes)}"
            )
