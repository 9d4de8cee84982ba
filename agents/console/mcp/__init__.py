"""Pages of MCP servers: setup, cards, gallery, import, files."""
