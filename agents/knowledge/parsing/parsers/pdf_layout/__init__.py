"""Finds out how a PDF page is laid out: words with places, ruling lines, tables and columns."""
