"""The semidefinite relaxation of clustering, solved and certified (Perrot et al. 2020, sec. 3; Yan et al. 2018).
`cascade` solves it, `spur` chooses the number of clusters, and `graded` says how clearly positions fall into groups."""

# share of replicates that put an object into its cluster; below, the object lies between clusters
MIN_CORE_STABILITY = 0.9
