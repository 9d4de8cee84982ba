"""Documents, their passages and stored files."""
