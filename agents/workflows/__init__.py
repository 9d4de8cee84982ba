"""Workflows: written by administrators, kept in every version, started by anybody."""
