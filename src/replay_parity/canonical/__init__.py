"""Bytes to canonical record: proof of form, digests, metadata."""
