"""Linear algebra on one thread: with busy processors, its threads wait for each other in loops, and a fit of many small
products takes a multiple of the processor time."""

from types import MappingProxyType

# environment variables, read by each library when it is loaded
ONE_THREAD = MappingProxyType(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)
