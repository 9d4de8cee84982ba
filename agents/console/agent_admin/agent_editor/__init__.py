"""The agent editor: an autosaved draft, what would change, publishing, and its page."""
