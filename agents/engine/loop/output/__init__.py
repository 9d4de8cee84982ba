"""A run's answer: its schema and its citations."""
