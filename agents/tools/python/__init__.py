"""Runs Python code that a model wrote, in a confined child."""

from .files import SVG, ChatFile, FileCheck, FileRejected
from .tool import RunPythonTool

__all__ = ["SVG", "ChatFile", "FileCheck", "FileRejected", "RunPythonTool"]
