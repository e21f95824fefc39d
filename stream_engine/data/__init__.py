"""What packages exchange: comparisons and batches, columns of triplet counts, similarity matrices, names, arrays in
memory or on disk, and the container format of files. Imports nothing else of the engine."""


def installed_version() -> str:
    """The version in the metadata of the installed package, or "0+checkout" for a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("triplet-stream-engine")
    except PackageNotFoundError:
        return "0+checkout"
