"""Pages of tools and databases: setup, test, OpenAPI import."""
