"""GitHub: events to facts, one HTTP client, outputs and commands that nothing can break out of."""
