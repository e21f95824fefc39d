"""Fuzzing: inputs made from a seed, structure-aware, and what must hold of each of them.

    python -m tests.fuzz --inputs N [--target NAME ...] [--seed S] [--minutes M]

An input is bytes, made by a target from `(seed, target, number)` and nothing else, so that a number repeats it. A
target is a module with

    make(rng) -> bytes      an input: something valid, with structure-aware damage, or a case of the corpus, changed
    check(data) -> str      what became of it, in a word; raises (AssertionError or anything) when it is a failure
    TRUSTED                 whether it is sure not to kill the process (others are run in a child in any case)

The oracles: no exception but the documented ones; the same answer whatever the size of blocks, arrival and compression,
in all formats, with fast paths and without; and the sum rule: seen = accepted + refused + filtered + empty. Every case
that ever failed is kept in `corpus/TARGET/`, smaller where it could be made so.
"""
