"""The parameters of refits in the settings: checked against the refit's own `Params`, auxiliary kernels included."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stream_engine.kernel_learning.auxiliary_files import NO_FILE, SUFFIXES, KernelSpec
from stream_engine.refits import REFITS, refit_module
from stream_engine.service.settings.problems import BadSettings, check_keys, nearest
from stream_engine.service.settings.schema import Settings
from stream_engine.service.settings.sentences import in_one_line


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
    params = refit_module(kind).Params
    check_keys(given, params, f"refits.params.{kind}")
    try:
        checked = msgspec.convert(dict(given), params, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(in_one_line(error, given, params, f"refits.params.{kind}")) from None
    check_kernel_files(getattr(checked, "kernels", {}), f"refits.params.{kind}.kernels")
    return checked


def check_kernels(kernels: Any, where: str) -> None:
    """Check them one by one, because msgspec does not say which of them is wrong. Raises `BadSettings`."""
    for name, table in kernels.items() if isinstance(kernels, dict) else ():
        try:
            msgspec.convert(table, KernelSpec, strict=False)
        except msgspec.ValidationError as error:
            raise BadSettings(f"{where}: {in_one_line(error, table, KernelSpec, f'kernels.{name}')}") from None


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
