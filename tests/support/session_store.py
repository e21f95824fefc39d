"""What several tests need and takes seconds to make: made once a session, by whichever process asks first."""

import fcntl
import os
import pickle
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
FOLDER = "PYTEST_STREAM_ENGINE_STORE"  # in the environment where several processes share a session: tests/conftest.py
_results: dict[str, bytes] = {}


def once(make: Callable[..., T], *given: object) -> T:
    """What `make(*given)` returns, a copy for everybody who asks. `given` can be pickled, and says all that matters."""
    key = blake2b(pickle.dumps((make.__module__, make.__qualname__, given)), digest_size=16).hexdigest()
    if key not in _results:
        _results[key] = _shared(key, lambda: pickle.dumps(make(*given)))
    return pickle.loads(_results[key])


def _shared(key: str, make: Callable[[], bytes]) -> bytes:
    if FOLDER not in os.environ:
        return make()
    path = Path(os.environ[FOLDER]) / key
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(make())
            part.rename(path)
        return path.read_bytes()
