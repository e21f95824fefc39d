"""Learning a kernel from comparisons: relative comparison kernel learning (`rckl`, Heim et al. 2014) and partial order
embedding (`mkpoe`, McFee & Lanckriet 2011), both as the convex problem of `problem`, which `factored` and `linear`
solve to a certified gap."""
