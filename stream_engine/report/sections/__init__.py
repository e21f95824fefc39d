"""Sections of the report, one file each, registered in `stream_engine.report`."""
