"""The names of the guard's policies, for those who only ask which there are: the guard itself brings the compiler."""

POLICIES = ("first", "drop-both", "majority", "sift")  # what they do: see partial_order
