"""A tool that reads a database: its guard, and the process that asks."""

from .tool import DatabaseTool

__all__ = ["DatabaseTool"]
