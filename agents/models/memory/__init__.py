"""What agents remember: memories, experiences and what both have in common."""
