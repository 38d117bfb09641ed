"""Revision to artifact: git, crate release, lock, cargo, artifact store."""
