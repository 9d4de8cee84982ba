"""Pages of language models: setup, providers, tests, usage."""
