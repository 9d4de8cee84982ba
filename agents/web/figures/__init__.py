"""Figures of runs as pages display them."""
