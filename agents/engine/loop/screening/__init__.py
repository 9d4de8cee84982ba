"""Guardrails over messages, files and errors."""
