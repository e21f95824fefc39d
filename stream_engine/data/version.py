"""The version of the engine that is installed. Imports nothing until it is asked."""


def installed_version() -> str:
    """The version in the metadata of the installed package, or "0+checkout" for a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("triplet-stream-engine")
    except PackageNotFoundError:
        return "0+checkout"
