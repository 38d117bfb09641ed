"""Verdict to what a person sees."""
