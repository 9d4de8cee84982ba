"""Exports the file: the same rows give the same bytes."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import yaml

from agents.access import audit
from agents.engine.plans import parse_scalar

from .kinds import KINDS
from .permissions import ConfigUser, can_read, user_or_none

FORMAT_VERSION = 1
HEADER = "ashiato"
AUDIT_SUBJECT = "configuration"
YAML_WIDTH = 10_000  # one line per value, so that a diff only shows changes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSelection:
    """Kinds and names to export; no names means all."""

    kinds: Collection[str] = field(default_factory=lambda: tuple(KINDS))
    names: Collection[str] = ()


def export(user: ConfigUser, selection: ExportSelection) -> str:
    """Return the file with what this user can read; the export is audited."""
    kinds = [key for key in readable_kinds(user) if key in selection.kinds]
    # Not in one transaction with the entry: SQLite would lock all writers while it is written.
    sections = {}
    for key in kinds:
        kind = KINDS[key]
        rows = {
            name: row
            for name, row in sorted(kind.named_rows().items())
            if not selection.names or name in selection.names
        }
        sections[key] = kind.describe_all(rows)
    text = dump_yaml(sections)
    audit.record(user_or_none(user), audit.CONFIG_EXPORTED, AUDIT_SUBJECT, kinds=kinds)
    return text


def readable_kinds(user: ConfigUser) -> list[str]:
    """Return the kinds this user can read."""
    return [
        key
        for key, kind in KINDS.items()
        if can_read(user, kind.model) and kind.is_open_to(user)
    ]


def dump_yaml(sections: dict[str, dict[str, Any]]) -> str:
    document = {HEADER: FORMAT_VERSION, **sections}
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=YAML_WIDTH
    )
    return text


class _Dumper(yaml.SafeDumper):
    """Writes multi-line text as it is."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if parse_scalar(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
