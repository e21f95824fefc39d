"""An embedding in d dimensions, found from comparisons: objects as points, an answer more likely the further apart.

P(near) = lapse_w / 2 + (1 - lapse_w) sigma(phi(|x_k - x_l|^2) - phi(|x_i - x_j|^2)) for the answer d(i, j) < d(k, l) of
worker w. phi is the identity (STE) or alpha_log, the heavy-tailed kernel (t-STE; van der Maaten & Weinberger 2012, sec.
3 and 4). What is minimised is the negative log likelihood of all answers + ridge |X|^2 + a prior on the lapses.
`questions` counts equal answers once, `gradient` is compiled, `starts` says where to begin, `fit` descends, `choice`
selects d and the ridge on a validation set, `differences` says who sees the objects differently, and `online` follows a
stream. See docs/design/embedding.md.
"""
