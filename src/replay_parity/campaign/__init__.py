"""What is compared: models, loading, JSON Schemas."""
