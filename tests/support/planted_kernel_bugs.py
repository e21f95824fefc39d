"""Planted bugs in the compiled kernels, for `tests/plant_bugs.py`.

Each must be caught although compiled code of the kernels as they are is there to be taken from the cache.
"""

from typing import NamedTuple


class Bug(NamedTuple):
    """Replace `good` by `bad` in `file`; `tests` must then fail."""

    what: str
    file: str
    good: str
    bad: str
    tests: str


GUARD, EXPANDED = "tests/guard/test_partial_order.py", "tests/formats/test_expansion.py"
ASKED, BOOSTED = "tests/asking/test_ensemble.py", "tests/boosting/test_triplet_boost.py"
COUNTED = "tests/laws/test_accumulators.py -k 'definition and triplet_counts and not weighted and not decayed'"
SUMMED = "tests/laws/test_accumulators.py -k 'definition and adds and not weighted and not decayed'"
SEARCHED = GUARD + " -k 'every_verdict and first'"

KERNEL_BUGS = [
    # The guard.
    Bug(
        "no comparison closes a cycle",
        "stream_engine/guard/cycle_search.py",
        "    ahead = book[STAMP]  #",
        "    return False\n    ahead = book[STAMP]  #",
        SEARCHED,
    ),
    Bug(
        "nodes behind stay where they were",
        "stream_engine/guard/cycle_search.py",
        "            n_b += 1\n",
        "",
        SEARCHED,
    ),
    Bug(
        "the heap does not know its smaller child",
        "stream_engine/guard/cycle_search.py",
        "            child += 1\n",
        "            child += 0\n",
        GUARD + " -k 'denser_worlds and first'",
    ),
    Bug(
        "majority keeps what as many said as denied",
        "stream_engine/guard/exact_kernels.py",
        "if not same and after <= 0:",
        "if not same and after < 0:",
        GUARD + " -k 'every_verdict and majority'",
    ),
    Bug(
        "drop-both strikes what was said twice the same way",
        "stream_engine/guard/exact_kernels.py",
        "if mark & (SEEN_BA if forward else SEEN_AB) != 0:",
        "if mark & (SEEN_AB if forward else SEEN_BA) != 0:",
        GUARD + " -k 'every_verdict and drop'",
    ),
    Bug(
        "comparisons behind a full table are passed over",
        "stream_engine/guard/exact_kernels.py",
        "        start += found\n",
        "        start += len(nodes)\n",
        "tests/guard/test_partial_order.py -k ahead",
    ),
    Bug(
        "a new node stands at the front of the sequence",
        "stream_engine/guard/pair_nodes.py",
        "insert_one(g.node, g.link, np.int64(g.link[0, 0]), x)",
        "insert_one(g.node, g.link, np.int64(0), x)",
        "tests/guard/test_partial_order.py -k sift_is",
    ),
    Bug(
        "an edge that is gone still justifies masks",
        "stream_engine/guard/exact_kernels.py",
        "        edge_removed(g, v, u)\n",
        "",
        GUARD + " -k 'invariants_hold and drop'",
    ),
    Bug(
        "who reaches a support is asked of the wrong side",
        "stream_engine/guard/reachability_masks.py",
        "_sweep(g, order[::-1].copy(), TO, IN)",
        "_sweep(g, order[::-1].copy(), TO, OUT)",
        GUARD + " -k 'invariants_hold and first'",
    ),
    Bug(
        "a new edge passes its bits on the wrong way",
        "stream_engine/guard/reachability_masks.py",
        "g.node[u, TO] |= g.node[v, TO]",
        "g.node[v, TO] |= g.node[u, TO]",
        GUARD + " -k 'invariants_hold and first'",
    ),
    Bug(
        "a bit without a reason stays",
        "stream_engine/guard/reachability_masks.py",
        "node[x, field] &= ~lost",
        "node[x, field] &= lost | ~lost",
        GUARD + " -k 'invariants_hold and drop'",
    ),
    Bug(
        "the node after a new one does not know it",
        "stream_engine/guard/order_maintenance.py",
        "    link[after, 0] = y\n",
        "",
        GUARD + " -k hostile",
    ),
    Bug(
        "labels are spread out over a range that is full",
        "stream_engine/guard/order_maintenance.py",
        "if count + extra < room or bits == 62:",
        "if bits > 0:",
        GUARD + " -k hostile",
    ),
    Bug(
        "both of a pair hear the vote as for them",
        "stream_engine/guard/sifting_kernels.py",
        "v.net[of_q] -= weight",
        "v.net[of_q] += weight",
        GUARD + " -k sift_is",
    ),
    Bug(
        "a node is sifted one vote too early",
        "stream_engine/guard/sifting_kernels.py",
        "if GATE * v.node[x, DEBT] > v.node[x, VOTES]:",
        "if GATE * v.node[x, DEBT] >= v.node[x, VOTES]:",
        GUARD + " -k sift_is",
    ),
    Bug(
        "of equally good slots the last is taken",
        "stream_engine/guard/sifting_kernels.py",
        "abs(k - place) < abs(best - place)",
        "abs(k - place) <= abs(best - place)",
        GUARD + " -k sift_is",
    ),
    # Events to comparisons.
    Bug(
        "neighbours in a ranking are not compared",
        "stream_engine/formats/expand.py",
        "for far in range(s + 1, hi):",
        "for far in range(s + 2, hi):",
        EXPANDED + " -k 'small_event and ranking'",
    ),
    Bug(
        "a pair may be compared with itself turned round",
        "stream_engine/formats/expand.py",
        "if (i == k and j == l) or (i == l and j == k):",
        "if i == k and j == l:",
        EXPANDED + " -k 'small_event and quadruplet'",
    ),
    Bug(
        "the odd one is the nearest",
        "stream_engine/formats/expand.py",
        "near_first, far_first = (second, special) if odd",
        "near_first, far_first = (special, second) if odd",
        EXPANDED + " -k 'small_event and odd'",
    ),
    # What to ask next.
    Bug(
        "an answer makes its objects less certain",
        "stream_engine/asking/ensemble.py",
        "shrink, beta = h / (1.0 + h * total)",
        "shrink, beta = -h / (1.0 + h * total)",
        ASKED + " -k kalman",
    ),
    Bug(
        "what an answer tells does not know how likely it is",
        "stream_engine/asking/ensemble.py",
        "information += u * u / max(p * (1.0 - p), 1e-12)",
        "information += u * u / max(p, 1e-12)",
        ASKED + " -k means_over",
    ),
    Bug(
        "the far pair's slope is that of the near one",
        "stream_engine/asking/model.py",
        "0.5 * (alpha + 1.0) / (alpha + near), 0.5 * (alpha + 1.0) / (alpha + far)",
        "0.5 * (alpha + 1.0) / (alpha + near), 0.5 * (alpha + 1.0) / (alpha + near)",
        ASKED + " -k slopes",
    ),
    # Counts.
    Bug(
        "known keys swap their directions",
        "stream_engine/accumulators/sorted_counts.py",
        "n_hi[i] += new_hi[j] if same else 0",
        "n_hi[i] += new_lo[j] if same else 0",
        COUNTED,
    ),
    Bug(
        "wide keys are told apart by their second word alone",
        "stream_engine/accumulators/sorted_counts.py",
        "            fresh |= high[e] != top\n",
        "",
        COUNTED,
    ),
    Bug(
        "wide keys are merged by their second word first",
        "stream_engine/accumulators/sorted_counts.py",
        "mine = top < new_top or (top == new_top and mine)",
        "mine = top < new_top or mine",
        COUNTED,
    ),
    Bug(
        "triplets are counted for the farther side",
        "stream_engine/accumulators/triplet_counts.py",
        "np.uint64(near > far)",
        "np.uint64(near < far)",
        COUNTED,
    ),
    Bug(
        "a column begins one entry late",
        "stream_engine/accumulators/triplet_counts.py",
        "start[columns] = e\n",
        "start[columns] = e + 1\n",
        COUNTED,
    ),
    Bug(
        "the far pair is written below the diagonal",
        "stream_engine/accumulators/adds_similarity.py",
        "w[min(k, l), max(k, l)] -= 1",
        "w[k, l] -= 1",
        SUMMED,
    ),
    Bug(
        "AddS of many objects takes near for far",
        "stream_engine/accumulators/adds_similarity.py",
        "np.uint64(side)",
        "np.uint64(1 - side)",
        SUMMED,
    ),
    # Boosting.
    Bug(
        "what was right gains weight",
        "stream_engine/boosting/rounds.py",
        "(state.v[x, y] > 0) == says[side, y]",
        "(state.v[x, y] > 0) != says[side, y]",
        BOOSTED + " -k rounds_equal",
    ),
    Bug(
        "a draw forgets the blocks that it has passed",
        "stream_engine/boosting/draws.py",
        "        left -= state.block_sum[block]\n",
        "",
        BOOSTED + " -k 'distribution or drawn'",
    ),
    Bug(
        "bisection jumps over a column",
        "stream_engine/boosting/rounds.py",
        "left = middle + 1",
        "left = middle + 2",
        BOOSTED + " -k bisection",
    ),
    Bug(
        "a path through a support that is the end of an edge itself makes the edge redundant",
        "stream_engine/guard/supports.py",
        "            if number[v] >= 0 and number[v] >> 6 == w:\n",
        "            if False:\n",
        "tests/guard/test_transitive_reduction.py -k definition",
    ),
    Bug(
        "a node is not looked at again when a neighbour has moved",
        "stream_engine/guard/canonical_order.py",
        "                    waiting[v.neighbour[k]] = True\n",
        "                    pass\n",
        "tests/guard/test_canonical_order.py -k row_by_row",
    ),
]
