"""Input: settings, sources, decoding of records, and how files without options are read."""
