"""Workflows: written by administrators, versioned, started by anyone."""
