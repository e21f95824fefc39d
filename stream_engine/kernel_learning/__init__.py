"""Learning a kernel from comparisons: the convex problems of two papers, and their solvers.

Both relative comparison kernel learning (Heim et al. 2014) and partial order embedding (McFee & Lanckriet 2011) are

    min   sum_p c_p tr A_p + e'mu + sum_t w_t loss(x_t)      over A_p PSD, mu >= 0
    with  x_t = d(i, j) - d(k, l) = <sum_p R_p A_p R_p', B_t> + (D mu)_t      for comparison t = (i, j; k, l)

and differ in the factors R_p (I; a square root of a kernel; features), the columns D and the weights. `problem.py`
holds that one form with its exact dual bound, `factored.py` solves it, `linear.py` solves the diagonal form of partial
order embedding, a linear program, and `rckl.py` and `mkpoe.py` say which problem each paper means.
"""
