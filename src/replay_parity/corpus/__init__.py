"""Trace to verified slice."""
