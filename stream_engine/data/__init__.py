"""What packages exchange: comparisons and batches, columns of triplet counts, similarity matrices, names, arrays in
memory or on disk, and the container format of files. Imports nothing else of the engine."""

import time

IMPORTED = time.time()  # before any kernel was defined
