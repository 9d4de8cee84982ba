"""Reads MCP servers from the configuration of another program.

It knows the shapes of Claude, Cursor, VS Code, Windsurf, Gemini CLI, Codex, Zed, opencode,
Cline, Roo, LM Studio, Goose, Continue and LibreChat. What has no meaning here is skipped with a
note. A server that can't be read has problems, and doesn't stop the others.
"""

from .imported_server import MAX_SERVERS, ImportedServer
from .servers import read_servers

__all__ = ["ImportedServer", "MAX_SERVERS", "read_servers"]
