"""The pipeline's stages put together: plan, build, row, verdict; the only callers of everything below."""
