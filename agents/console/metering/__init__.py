"""Pages of limits, caches and usage."""
