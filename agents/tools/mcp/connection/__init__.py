"""Connects to servers, keeps the connections, and calls their tools."""
