"""Suggestions for administrators: what would make an agent better, with its evidence."""
