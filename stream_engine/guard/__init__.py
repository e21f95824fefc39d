"""What `partial_order` is made of: compiled kernels over plain arrays, one structure a file.

    tables      hashes: pair of objects -> node, pair of nodes -> what is known of that comparison
    rows        comparisons as canonical rows, numbered nodes, topological sorting
    sequence    order-maintenance list: nodes in a total order with integer labels
    graph       the guard's arrays: nodes, adjacency in growable pools
    search      does v reach u? if not, reorder so that u stands before v
    supports    64 supportive nodes and who reaches them
    exact       the exact guard: policies first, drop-both, majority
    sift        the total order that follows the net votes: policy sift
    canonical   the order of a snapshot, from counts alone
    reduction   transitive reduction

A node is an unordered pair of objects {i, j}; an edge p -> q says that pair p is nearer than pair q.
Small kernels on the way of every comparison are inlined, and what is rare is a call behind an `if`: a call that passes
arrays costs numba 20-50 ns of reference counting, as much as the work itself. Kernels call each other across
files; the cache of compiled code (`data/compiled.py`) notices a change in any of them.
"""
