"""What pages of rows are made of: audited, read-only, with undo, with JSON fields."""
