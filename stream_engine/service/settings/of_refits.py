"""The parameters of refits in the settings: checked against the refit's own `Params`, auxiliary kernels included."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stream_engine.kernel_learning.auxiliary_files import NO_FILE, SUFFIXES, KernelSpec
from stream_engine.refits import REFITS, refit_module
from stream_engine.service.settings.problems import BadSettings, converted, nearest
from stream_engine.service.settings.schema import Settings


def params_of(settings: Settings, kind: str) -> dict[str, Any]:
    """What the settings say of a refit, as plain values: its own table, and [kernels] where it takes auxiliary kernels
    and names neither kernels nor features of its own."""
    given = dict(settings.refits.params.get(kind, {}))
    fields = {f.encode_name for f in msgspec.structs.fields(refit_module(kind).Params)}
    if settings.kernels and "kernels" in fields and not {"kernels", "features"} & given.keys():
        given["kernels"] = msgspec.to_builtins(settings.kernels)
    return given


def refit_params(kind: str, given: Mapping[str, Any]) -> Struct:
    """The checked `Params` of a refit. Raises `BadSettings`."""
    if kind not in REFITS:
        raise BadSettings(f"refits.params.{kind}: unknown refit{nearest(kind, REFITS)}")
    checked: Struct = converted(given, refit_module(kind).Params, "", f"refits.params.{kind}")
    check_kernel_files(getattr(checked, "kernels", {}), f"refits.params.{kind}.kernels")
    return checked


def check_kernel_files(kernels: Mapping[str, KernelSpec], where: str) -> None:
    """What can be said of [kernels] before their files are read: that they are there, and of a kind we know."""
    for name, spec in kernels.items():
        for key, file in (("file", spec.file), ("objects", spec.objects)):
            if file is not None and not Path(file).is_file():
                raise BadSettings(f"{where}.{name}.{key}: got {file!r}, {NO_FILE}")
        if not spec.file.endswith(SUFFIXES):
            raise BadSettings(
                f"{where}.{name}.file: got {spec.file!r}, expected a name ending in {', '.join(SUFFIXES)}"
            )
