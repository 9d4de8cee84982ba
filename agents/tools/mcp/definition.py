"""What a server says of a tool, pinned by its hash, and what changed in it since."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from unicodedata import category

from agents.engine.tool import Effect

SEPARATOR = "__"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 8_000
INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn"}
PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as its server describes it; `annotations` are claims, and no more than that."""

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
        """Whoever does not say that they only read may destroy."""
        return self.effect != "read"

    def with_trust(self, is_trusted: bool) -> "ToolDefinition":
        """With its claims where an administrator trusts them; else as if it made none."""
        return self if is_trusted else replace(self, annotations={})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def digest(definition: ToolDefinition) -> str:
    """What an accepted definition is pinned by."""
    whole = json.dumps(definition.as_dict(), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def diff(old: ToolDefinition, new: ToolDefinition) -> list[tuple[str, str, str]]:
    """What changed, as (what, before, after); empty texts where there was, or is, nothing."""
    before, after = dict(_flatten(old.as_dict())), dict(_flatten(new.as_dict()))
    return [
        (
            escape_invisible(_format_path(path)),
            escape_invisible(before.get(path, "")),
            escape_invisible(after.get(path, "")),
        )
        for path in dict.fromkeys([*before, *after])
        if before.get(path) != after.get(path)
    ]


def escape_invisible(text: str) -> str:
    """With what cannot be seen made visible: it could speak to a model and to no reader."""
    return "".join(
        f"⟨U+{ord(sign):04X}⟩"
        if category(sign) in INVISIBLE_CATEGORIES and sign != "\n"
        else sign
        for sign in text
    )


def _flatten(value: Any, path: Path = ()) -> list[tuple[Path, str]]:
    if isinstance(value, Mapping) and value:
        return [leaf for key in value for leaf in _flatten(value[key], (*path, key))]
    return [(path, _format_value(value))]


def _format_value(value: Any) -> str:
    """A text as it is, unless it reads like something else: `"true"` is not `true`."""
    if isinstance(value, str) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _format_path(path: Path) -> str:
    """For readers; a key with a point in it must not look like two."""
    return ".".join(
        key if PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path
    )


def tool_name(server: str, tool: str) -> str:
    """What the model calls a tool: no two tools of any servers have the same."""
    plain = f"{server}{SEPARATOR}{re.sub(r'[^a-zA-Z0-9_-]', '_', tool)}"
    if plain == f"{server}{SEPARATOR}{tool}" and len(plain) <= MAX_NAME_CHARS:
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{plain[: MAX_NAME_CHARS - 9]}_{mark}"
