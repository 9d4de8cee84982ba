"""Rows of models as clients and planners."""
