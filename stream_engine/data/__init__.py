"""What passes between rooms: comparisons and batches, columns of triplet counts, similarity matrices, names, arrays
in memory or on disk, the container format of files. Imports nothing else of the engine.
"""
