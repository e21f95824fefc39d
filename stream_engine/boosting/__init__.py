"""TripletBoost's machinery: two bytes a triplet, a microsecond a round, votes by matching keys.

`labels.py` turns classes into label sets, groups and parts (train, test, stop); `codes.py` lays triplets out as columns
of (anchor << 1 | side); `rounds.py` is Algorithm 1 of Perrot & von Luxburg (2019), `draws.py` its sampler,
`label_sums.py` the sums of equation (2) that need care; `votes.py` is equation (5); `theorems.py` says what Theorems 3
and 4 say of a booster. Plain functions on arrays: `stream_engine.refits.triplet_boost` is their only door to snapshots.
"""
