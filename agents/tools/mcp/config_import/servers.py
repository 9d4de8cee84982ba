"""The servers in the configuration of another program."""

from collections.abc import Mapping
from typing import Any

from agents.engine.sentences import Sentence as _

from ..configuration.config import InvalidServerConfig
from ..configuration.placeholders import Inputs
from .entries import dig, find_entries
from .entry_reader import EntryReader
from .imported_server import MAX_SERVERS, ImportedServer
from .pasted_text import decode


def read_servers(source: str | Mapping[str, Any]) -> list[ImportedServer]:
    """Return all servers in the text; raise InvalidServerConfig if there is none."""
    data = decode(source) if isinstance(source, str) else source
    entries = find_entries(data)
    if not entries:
        raise InvalidServerConfig(_('No server found. Enter {"mcpServers": {"name": {…}}}.'))
    if len(entries) > MAX_SERVERS:
        raise InvalidServerConfig(
            _(
                "Too many servers: %(count)s. The limit is %(limit)s.",
                count=len(entries),
                limit=MAX_SERVERS,
            )
        )
    inputs = Inputs.read(dig(data, ("inputs",)) or dig(data, ("mcp", "inputs")))
    used_names: set[str] = set()
    return [EntryReader(name, entry, inputs, used_names).read() for name, entry in entries]
