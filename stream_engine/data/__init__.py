"""What packages exchange: comparisons and batches, columns of triplet counts, similarity matrices, names, arrays in
memory or on disk, and the container format of files. Imports nothing else of the engine."""

from importlib import import_module
from typing import Any


def registered(entry: str) -> Any:
    """What an entry "module:attribute" of a registry names; it is imported now."""
    module, _, attribute = entry.partition(":")
    return getattr(import_module(module), attribute)


def installed_version() -> str:
    """The version in the metadata of the installed package, or "0+checkout" for a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("triplet-stream-engine")
    except PackageNotFoundError:
        return "0+checkout"
