"""Memory asked for before it is taken."""

from stream_engine.data.available_memory import available


class TooLarge(ValueError):
    """What is asked for does not fit; one line with the numbers."""


def require(what: str, n: int, matrices: float, limit: int | None) -> None:
    """Raise TooLarge unless `matrices` (n, n) float64 matrices fit into `limit` bytes (None: what is available now).

    >>> require("x", 10, 2, limit=100)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    stream_engine.clustering.memory_check.TooLarge: x: 10 objects need 1.6e-06 GB (2 matrices of 10 x 10), 1e-07 GB may be used; ...
    """
    need, have = int(matrices * 8 * n * n), available() if limit is None else limit
    if have is not None and need > have:
        raise TooLarge(
            f"{what}: {n} objects need {_gb(need)} ({matrices:g} matrices of {n} x {n}), "
            f"{_gb(have)} may be used; raise the limit, choose objects (objects=5000), or use the refit "
            "`spectral`"
        )


def _gb(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e9:.2g} GB"
