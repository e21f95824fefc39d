"""The kernels' public name, `stream_engine.kernels`; the code is in `stream_engine/counts/kernels.py`."""

from stream_engine.counts.kernels import eigenpairs, factors, features1, features2, k1, k2, landmarks, mulk4, shift

__all__ = ["eigenpairs", "factors", "features1", "features2", "k1", "k2", "landmarks", "mulk4", "shift"]
