"""Registers the pages of `agents.console` with Django's admin."""

from agents import console  # noqa: F401
