"""Classes of objects from comparisons: nearest neighbours and support vector machines on similarities, and which of
several classifiers serves best (Kleindessner & von Luxburg 2017: k1 and k2 are for any kernel method).

`neighbours` and `vector_machine` give scores, `probabilities` makes them probabilities, `nested` chooses among models
and settings and reports on objects that neither chose nor were learned from. All of it is on arrays.
"""
