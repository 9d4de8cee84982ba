"""Judges the answers of an experiment and compares them."""
