"""Memory asked for before it is taken."""

from stream_engine.memory import available


class TooLarge(ValueError):
    """What is asked for does not fit; one line with the numbers."""


def require(what: str, n: int, matrices: float, limit: int | None) -> None:
    """Raise TooLarge unless `matrices` (n, n) float64 matrices fit into `limit` bytes (None: what is available now).

    >>> require("x", 10, 2, limit=100)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    stream_engine.sdp.memory.TooLarge: x: 10 objects need 0.0 GB (2 matrices of 10 x 10), 0.0 GB may be used; ...
    """
    need, have = int(matrices * 8 * n * n), available() if limit is None else limit
    if have is not None and need > have:
        raise TooLarge(f"{what}: {n} objects need {need / 1e9:.1f} GB ({matrices:g} matrices of {n} x {n}), "
                       f"{have / 1e9:.1f} GB may be used; raise the limit, choose objects (objects=5000), or use the refit "
                       "`spectral`")
