"""Pure functions of counts: kernels and their factors, eigenpairs, confidence, worker reliability, restriction to a subset."""
