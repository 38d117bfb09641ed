"""Processes, files and locks: the only importers of subprocess and of low-level file work."""
