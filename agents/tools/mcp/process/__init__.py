"""Starts a server's program, confined to its folder."""
