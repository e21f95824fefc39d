"""What passes between rooms: comparisons and batches, columns of triplet counts, matrices of similarities, packed names,
arrays in memory or on disk, the container format of files. Imports nothing else of the engine.
"""
