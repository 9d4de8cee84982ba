"""Calls of tools, with approval, caches and fallback."""
