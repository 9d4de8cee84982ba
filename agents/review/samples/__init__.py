"""Sample runs for a new installation."""
