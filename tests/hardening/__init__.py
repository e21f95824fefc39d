"""What the engine must bear from strangers, measured on real processes; each script prints a table."""
