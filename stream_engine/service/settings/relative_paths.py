"""File names of auxiliary kernels in a configuration file are relative to that file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def rewrite_relative_paths(tree: dict[str, Any], folder: Path) -> None:
    """Put `folder` before every relative file name of a kernel, in place."""
    for spec in _kernel_specs(tree):
        for key in ("file", "objects"):
            if isinstance(spec, dict) and isinstance(spec.get(key), str):
                spec[key] = str(folder / spec[key])


def _kernel_specs(tree: dict[str, Any]) -> Iterator[Any]:
    """What stands where a kernel is described: in [kernels], and in `kernels` and `features` of a refit."""
    refits = tree.get("refits")
    params = refits.get("params") if isinstance(refits, dict) else None
    of_refits = [each for each in params.values() if isinstance(each, dict)] if isinstance(params, dict) else []
    for table in (tree.get("kernels"), *(each.get("kernels") for each in of_refits)):
        if isinstance(table, dict):
            yield from table.values()
    yield from (each.get("features") for each in of_refits)
