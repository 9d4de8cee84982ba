"""A tool that reads a database: its query guard and worker process."""

from .tool import DatabaseTool

__all__ = ["DatabaseTool"]
