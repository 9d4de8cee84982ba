"""Where the examples of an experiment come from."""
