"""States checked against their sources, cut anew, and moved on purpose."""
