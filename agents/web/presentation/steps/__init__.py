"""Steps of a run as templates display them."""
