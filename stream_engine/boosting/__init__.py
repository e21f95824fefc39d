"""TripletBoost's machinery: two bytes a triplet, a microsecond a round, votes by matching keys.

`labels.py` turns classes into label sets, groups and parts (train, test, stop); `codes.py` lays triplets out as columns
of (anchor << 1 | side); `rounds.py` is Algorithm 1 of Perrot & von Luxburg (2019) with its sampler; `votes.py` is
equation (5). Plain functions on arrays: `stream_engine.refits.triplet_boost` is their only door to snapshots.
"""
