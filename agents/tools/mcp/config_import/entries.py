"""Finds the entries of servers, whatever they are nested in."""

from collections.abc import Iterable, Mapping
from typing import Any

from .known_fields import ENTRY_FIELDS, SERVER_PATHS


def find_entries(data: Any) -> list[tuple[str, Any]]:
    """Return the servers with their names, wherever the program keeps them."""
    if isinstance(data, list):
        return _named_items(data)
    if not isinstance(data, Mapping):
        return []
    for path in SERVER_PATHS:
        servers = dig(data, path)
        if isinstance(servers, list) and any(map(_is_entry, servers)):
            return _named_items(servers)
        if isinstance(servers, Mapping) and (servers == {} or _has_entry(servers)):
            return list(servers.items())
        if path == ("mcpServers",) and isinstance(servers, Mapping) and servers:
            return list(servers.items())  # whatever is wrong with them
    projects = dig(data, ("projects",))
    if isinstance(projects, Mapping):
        groups = [dig(project, ("mcpServers",)) for project in projects.values()]
        merged = [
            item for group in groups if isinstance(group, Mapping) for item in group.items()
        ]
        if merged:
            return merged
    if _is_entry(data):
        return [(str(data.get("name") or ""), data)]
    return list(data.items()) if _has_entry(data) else []


def dig(data: Any, path: Iterable[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _named_items(items: list[Any]) -> list[tuple[str, Any]]:
    return [
        (
            str(item.get("name") or item.get("id") or "") if isinstance(item, Mapping) else "",
            item,
        )
        for item in items
    ]


def _is_entry(value: Any) -> bool:
    """Whether this is one server, and not a map of servers that happens to have such a name."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("config"), Mapping):
        value = value["config"]
    return any(
        isinstance(value[key], str | list) or is_nested_command(value[key])
        for key in ENTRY_FIELDS & {*value}
    )


def is_nested_command(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("path"), str)


def _has_entry(entries: Mapping[str, Any]) -> bool:
    return any(_is_entry(value) for value in entries.values())
