"""Mutants: small changes of the code, made mechanically, each of which the tests that run the line must notice.

Why a tool of its own (600 lines less of a dependency would be welcome): mutmut leaves out functions with decorators,
which is every compiled kernel; cosmic-ray runs one command for all mutants and cannot choose tests by line; neither
knows which compiled code a change makes stale.
"""
