"""The verbs of the command line: one verb, one file."""
