"""Files and standard input as sources, dead letters in files as a sink."""
