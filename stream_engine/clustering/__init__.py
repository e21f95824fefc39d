"""The semidefinite relaxation of clustering, solved and certified (Perrot et al. 2020, sec. 3; Yan et al. 2018).

    SDP-lambda:  max <W, X> - lambda tr X   s.t.  X >= 0, X psd, X 1 = 1
    SDP-k:       max <W, X>                 s.t.  X >= 0, X psd, X 1 = 1, tr X = k

W is symmetric with a zero diagonal and enters <W, X> = sum_ij W_ij X_ij with both of its triangles. (The authors'
published code counts each off-diagonal pair once, so a lambda given to it acts like 2 lambda here.) At a clustering,
X_ij = 1/|C| for i, j in the same cluster C and 0 elsewhere, and tr X is the number of clusters.

The cascade of `solve`, cheapest first: a partition (`partition`), a proof that it is the optimum (`certificate`), a
two-block ADMM (`admm`) with a rigorous gap between a feasible point and an upper bound (both in
`dual_bounds`). `spur` chooses k. Only `similarity_of_snapshot`,
`admm.warm_states` and `stability` know of snapshots and artifacts.
"""

BETWEEN = 0.9  # share of the halves that put an object into its cluster, below which it lies between clusters
