"""Rows of tools as engine tools."""
