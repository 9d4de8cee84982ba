"""Runs with their steps, events, approvals and attachments."""
