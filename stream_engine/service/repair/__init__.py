"""Repair of states: checked, recounted from their sources, divided into other shares, and moved."""
