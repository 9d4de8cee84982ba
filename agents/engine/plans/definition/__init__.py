"""What a plan is, how it is read from YAML, and what is wrong with it."""
