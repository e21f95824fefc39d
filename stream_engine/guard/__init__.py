"""The partial order of the comparisons: compiled kernels over plain arrays, one structure a file.

    partial_order           the door: `PartialOrder`, its policies and verdicts; policies their names alone
    exact_guard             policies first, drop-both, majority; exact_kernels its verdicts
    sifting_guard           policy sift: a total order that follows the net votes; sifting_kernels its local search
    graph                   the exact guard's arrays: nodes, adjacency in growable pools, what is known of an edge
    pair_nodes              nodes, which stand for pairs of objects, of both guards
    hash_tables             pair of objects -> node, and pair of nodes -> what is known of that comparison
    order_maintenance       nodes in a total order with integer labels
    cycle_search            does v reach u? if not, reorder so that u stands before v
    reachability_masks      64 supportive nodes and who reaches them
    pair_rows               comparisons as canonical rows, numbered nodes, topological sorting
    distinct_edges          the policy first for edges that are each offered once: no tables
    canonical_order         the order of a snapshot, from counts alone
    transitive_reduction    the smallest set of comparisons with the same consequences
    invariants              what `PartialOrder.check` asserts

A node is an unordered pair of objects {i, j}; an edge p -> q says that pair p is nearer than pair q.
The kernels of a guard take one record of arrays (`Graph`, `Votes`); those that Python calls begin by borrowing it, so
that handing it on costs nothing. Small kernels on the way of every comparison are inlined, and what is rare is a call
behind an `if`. A batch is judged in order, but its nodes are found first, and what the next comparisons will look at is
asked for ahead (`data/prefetch.py`): in a large graph most of the time was waiting for memory. Kernels call each other
across files; the cache of compiled code (`data/kernel_cache.py`) notices a change in any of them.
"""
