"""The configuration as one file: exported, compared and imported, always without keys."""
