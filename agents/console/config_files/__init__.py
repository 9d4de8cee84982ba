"""What an administrator set up, as one file: written, compared and taken over, never a key."""
