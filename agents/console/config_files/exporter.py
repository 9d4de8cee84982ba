"""The file as it is written: the same rows give the same bytes."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.db import transaction

from agents.access import audit
from agents.engine.plans.yaml_reader import meant

from .kinds import KINDS
from .permissions import account, may_read

FORMAT = 1
HEADER = "ashiato"
SUBJECT = "configuration"
WIDE = 10_000  # one line a value: a difference shows what changed, and nothing that moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is to be in the file: these kinds, and of them these names; none means all."""

    kinds: Collection[str] = field(default_factory=lambda: tuple(KINDS))
    names: Collection[str] = ()


@transaction.atomic
def export(user: Any, selection: Selection) -> str:
    """The text of the file, of what this person may read; that it was taken is recorded."""
    kinds = [key for key in readable(user) if key in selection.kinds]
    text = written({key: _things(key, selection.names) for key in kinds})
    audit.record(account(user), audit.CONFIG_EXPORTED, SUBJECT, kinds=kinds)
    return text


def readable(user: Any) -> list[str]:
    """The kinds that this person may read."""
    return [key for key, kind in KINDS.items() if may_read(user, kind.model)]


def written(things: dict[str, dict[str, Any]]) -> str:
    told = {HEADER: FORMAT, **things}
    text: str = yaml.dump(told, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDE)
    return text


def _things(key: str, names: Collection[str]) -> dict[str, Any]:
    kind = KINDS[key]
    rows = sorted(kind.named_rows().items())
    return {name: kind.described(row) for name, row in rows if not names or name in names}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines are written as they are."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if meant(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
