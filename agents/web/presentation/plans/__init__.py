"""Plans and panels as templates display them."""
