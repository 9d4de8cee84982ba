"""A server's tool definition, pinned by its hash, and changes to it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from unicodedata import category

from agents.engine.json_text import is_json
from agents.engine.tool import Effect

SEPARATOR = "__"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 8_000
INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn"}
PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as its server describes it; `annotations` are unverified claims."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def effect(self) -> Effect:
        if self.annotations.get("readOnlyHint") is True:
            return "read"
        is_idempotent = self.annotations.get("idempotentHint") is True
        return "idempotent" if is_idempotent else "at_most_once"

    @property
    def needs_approval(self) -> bool:
        """Whether it needs approval: anything that isn't declared as read-only."""
        return self.effect != "read"

    def with_trust(self, is_trusted: bool) -> "ToolDefinition":
        """Return it with its claims if an administrator trusts them, else without."""
        return self if is_trusted else replace(self, annotations={})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that a server lets clients read, as it describes it."""

    uri: str
    name: str
    mime_type: str = ""
    size: int = 0
    modified: str = ""  # when, if the server says so


def digest(definition: ToolDefinition) -> str:
    """Return the hash that pins an accepted definition."""
    content = json.dumps(definition.as_dict(), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()


def diff(old: ToolDefinition, new: ToolDefinition) -> list[tuple[str, str, str]]:
    """Return changes as (what, before, after); empty text where there is nothing."""
    old_values = dict(_flatten(old.as_dict()))
    new_values = dict(_flatten(new.as_dict()))
    changes = []
    for path in dict.fromkeys([*old_values, *new_values]):
        if old_values.get(path) != new_values.get(path):
            # A key with a dot must not look like two.
            name = ".".join(
                key if PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
                for key in path
            )
            old_text = escape_invisible(old_values.get(path, ""))
            new_text = escape_invisible(new_values.get(path, ""))
            changes.append((escape_invisible(name), old_text, new_text))
    return changes


def escape_invisible(text: str) -> str:
    """Make invisible characters visible, which could address the model unseen."""
    return "".join(
        f"⟨U+{ord(sign):04X}⟩"
        if category(sign) in INVISIBLE_CATEGORIES and sign != "\n"
        else sign
        for sign in text
    )


def _flatten(value: Any, path: Path = ()) -> list[tuple[Path, str]]:
    if isinstance(value, Mapping) and value:
        return [leaf for key in value for leaf in _flatten(value[key], (*path, key))]
    # Text stays as it is, unless it looks like another type: `"true"` isn't `true`.
    is_plain = isinstance(value, str) and not is_json(value)
    return [(path, value if is_plain else json.dumps(value, ensure_ascii=False))]


def tool_name(server: str, tool: str) -> str:
    """Return the tool's name for models, unique across servers."""
    plain = f"{server}{SEPARATOR}{re.sub(r'[^a-zA-Z0-9_-]', '_', tool)}"
    if plain == f"{server}{SEPARATOR}{tool}" and len(plain) <= MAX_NAME_CHARS:
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{plain[: MAX_NAME_CHARS - 9]}_{mark}"
