"""Streaming online-learning engine for comparison data.

`read` makes a `Study` of files or frames, which answers what people ask. Below it `Engine` counts, `Snapshot` is what
it knows, refits learn from snapshots. Names here are loaded on use; `__version__` is that of the installed package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in `_PUBLIC`, for type checkers and completion
    from stream_engine.api.reading import read
    from stream_engine.api.study import Study
    from stream_engine.data.comparisons import Label, Quadruplet, Triplet
    from stream_engine.state.engine import Engine
    from stream_engine.state.snapshot import read_snapshot

    __version__: str

_PUBLIC = {
    "Engine": "stream_engine.state.engine",
    "Triplet": "stream_engine.data.comparisons",
    "Quadruplet": "stream_engine.data.comparisons",
    "Label": "stream_engine.data.comparisons",
    "read_snapshot": "stream_engine.state.snapshot",
    "read": "stream_engine.api.reading",
    "Study": "stream_engine.api.study",
}
__all__ = ["Engine", "Label", "Quadruplet", "Study", "Triplet", "read", "read_snapshot"]


if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("stream_engine.data").installed_version()
        if name in _PUBLIC:
            return getattr(import_module(_PUBLIC[name]), name)
        raise AttributeError(f"module 'stream_engine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "estimators", "kernels", "refits", "snapshot"]
