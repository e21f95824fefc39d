"""The partial order of the comparisons: compiled kernels over plain arrays, one structure per file.

    partial_order           the door: `PartialOrder` and its verdicts; judging its kernels
    graph                   its arrays: nodes in a total order, adjacency in growable pools, the table of kept edges
    hash_tables             pair of objects -> node, and pair of nodes -> the edge between them
    judging                 does v reach u? if not, reorder so that u stands before v; the verdict on each comparison
    reachability_masks      128 supportive nodes and who reaches them, live and in a finished graph
    stored_states           whether arrays from a file are a state
    canonical_order         the order of a snapshot, from counts alone; sifting its local search
    pair_rows               comparisons as canonical rows, numbered nodes, topological sorting
    transitive_reduction    the smallest set of comparisons with the same consequences; what votes it bears
    implied                 what follows without having been said

A node is an unordered pair of objects {i, j}; an edge p -> q says that pair p is nearer than pair q. Kernels take one
record of arrays (`Graph`), which those called from Python borrow first, so that passing it on costs nothing.
"""
