"""Classes of objects from comparisons: TripletBoost; nearest neighbours and support vectors on similarities.

TripletBoost's machinery: two bytes a triplet, a microsecond a round, votes by matching keys.

`labels.py` turns classes into label sets, groups and parts (train, test, stop); `codes.py` lays triplets out as columns
of (anchor << 1 | side); `rounds.py` is Algorithm 1 of Perrot & von Luxburg (2019) with its
sampler and the sums of equation (2) that need care; `votes.py` is equation (5); `theorems.py` says what Theorems 3
and 4 say of a booster. Plain functions on arrays: `stream_engine.refits.triplet_boost` is their only door to snapshots.

`vector_machine` gives scores, of nearest neighbours too, on any similarity (Kleindessner & von Luxburg 2017: k1 and k2
are for any kernel method), `probabilities` makes them probabilities, `nested` chooses among models and settings and
reports on objects that neither chose nor were learned from. All of it is on arrays.
"""
