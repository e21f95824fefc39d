"""Pure functions of counts: kernels, their factors and eigenpairs, confidence, worker reliability, subsets."""
