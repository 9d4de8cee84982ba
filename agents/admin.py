"""Where Django's admin looks for our pages; they are in `agents.console`."""

from agents import console  # noqa: F401
