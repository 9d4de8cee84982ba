"""Calls of models, with retry, caches and compaction."""
