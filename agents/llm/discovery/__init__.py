"""Finds models: in the environment, on this machine, in a provider's list."""
