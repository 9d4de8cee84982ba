"""Well-known MCP servers, as their documentation describes them (`server_gallery.toml`)."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from django.utils.translation import get_language

DATA = Path(__file__).with_suffix(".toml")
PLACEHOLDER = re.compile(r"\$\{([A-Z_]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryField:
    """A value that a person enters: a token, a folder, an address."""

    name: str
    labels: Mapping[str, str]
    helps: Mapping[str, str]
    is_secret: bool = False
    default: str = ""
    example: str = ""

    @property
    def label(self) -> str:
        return _in_language(self.labels)

    @property
    def help(self) -> str:
        return _in_language(self.helps)


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryServer:
    """A server to choose from, with placeholders for what a person enters."""

    key: str
    title: str
    category: str
    docs: str
    effect: str
    abouts: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    args: tuple[str, ...] = ()
    folders: str = ""
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    isolation: str = "shared"
    fields: tuple[GalleryField, ...] = ()

    @property
    def transport(self) -> str:
        return "http" if self.url else "stdio"

    @property
    def about(self) -> str:
        return _in_language(self.abouts)

    @property
    def note(self) -> str:
        return _in_language(self.notes)

    @property
    def writes(self) -> bool:
        return self.effect == "writes"

    @property
    def runs(self) -> str:
        """What is started or called, for people who want to know before."""
        return self.url or " ".join([self.command, *self.args])

    def settings(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the server's settings with these values filled in."""
        return {
            "transport": self.transport,
            "url": _fill_in(self.url, values),
            "command": self.command,
            "args": [_fill_in(arg, values) for arg in self.args],
            "folders": _fill_in(self.folders, values),
            "env": {name: _fill_in(text, values) for name, text in self.env.items()},
            "headers": {name: _fill_in(text, values) for name, text in self.headers.items()},
            "isolation": self.isolation,
        }


@cache
def gallery() -> dict[str, GalleryServer]:
    """Return the servers by key."""
    servers: dict[str, GalleryServer] = {}
    for entry in _data()["server"]:
        fields = [
            GalleryField(
                name=field_entry["name"],
                labels=field_entry["label"],
                helps=field_entry["help"],
                is_secret=field_entry.get("secret", False),
                default=field_entry.get("default", ""),
                example=field_entry.get("example", ""),
            )
            for field_entry in entry.get("field", ())
        ]
        optional_names = ("command", "folders", "url", "env", "headers", "isolation")
        servers[entry["key"]] = GalleryServer(
            key=entry["key"],
            title=entry["title"],
            category=entry["category"],
            docs=entry["docs"],
            effect=entry["effect"],
            **{name: entry[name] for name in optional_names if name in entry},
            args=tuple(entry.get("args", ())),
            abouts=entry["about"],
            notes=entry.get("note", {}),
            fields=tuple(fields),
        )
    return servers


def verified_on() -> date:
    """Return when the entries were last compared with their documentation."""
    verified: date = _data()["verified"]
    return verified


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def _fill_in(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values.get(match[1], ""), text)


def _in_language(texts: Mapping[str, str]) -> str:
    language = (get_language() or "en").split("-")[0]
    return texts.get(language) or texts.get("en", "")
