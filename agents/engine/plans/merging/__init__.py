"""Merges the answers of several agents, with their arithmetic."""
