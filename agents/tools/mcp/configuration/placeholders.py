"""Variables and placeholders in a pasted configuration.

A variable is filled in from the entry's own `env`, or by the person who imports it, and never
from this process's environment. What is still missing is written as `${NAME}`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .config import SECRET_NAME

MAX_EXPANSIONS = 1_000
MAX_EXPANDED_CHARS = 1_000_000
MAX_NAME_CHARS = 60

# ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:id}, ${{ secrets.NAME }}, {env:NAME}, {{NAME}}
REFERENCE = re.compile(
    r"\$\{\{\s*(?:(?:secrets|inputs|env)\.)?(?P<secret>[\w.-]+)\s*\}\}"
    r"|\$\{(?P<kind>[a-z]+):(?P<id>[\w.-]+)\}"
    r"|\$\{(?P<name>[\w./-]+)(?::?-(?P<default>[^{}]*))?\}"
    r"|\{env:(?P<opencode>\w+)\}"
    r"|\{\{(?P<curly>\w+)\}\}"
)
# A bare $NAME may be part of a password, so only a whole value or the start of a path counts.
BARE = re.compile(r"\$(?P<bare>[A-Za-z_]\w*)")
WHOLE_BARE = re.compile(r"\$([A-Z_][A-Z0-9_]*)(?=$|/)")
CANONICAL = re.compile(r"\$\{([\w.-]+)\}")

SECRET_WORDS = r"key|token|secret|passw(?:or)?d|credentials?|pat"
ANGLED = re.compile(r"<[A-Za-z][^<>\n]{0,80}>")
BLANK = re.compile(
    r"\[?your[-_ ][\w .-]*\]?"
    r"|(?:insert|enter|replace|paste|add|put|change)[-_ ]?(?:me|[-_ ][\w .-]+)"
    r"|[\w.-]+[-_ ]here"
    r"|(?:[a-z]{1,12}[-_]){0,3}(?:x{3,}|\*{3,}|\.{3,}|…)"
    r"|todo|tbd|changeme|placeholder",
    re.IGNORECASE,
)
# Only where a secret belongs: elsewhere these are ordinary words.
SECRET_BLANK = re.compile(
    rf"my[-_ ][\w .-]*|[a-z]+(?:[-_ ][a-z]+)*[-_ ](?:{SECRET_WORDS})"
    rf"|(?:api)?(?:{SECRET_WORDS})",
    re.IGNORECASE,
)
YOURS = re.compile(r"<[A-Za-z][^<>\n]{0,80}>|\b(?:YOUR|INSERT|REPLACE)[_-][A-Z0-9_-]+\b")
SCHEME = re.compile(r"(?:bearer|basic|token|apikey)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingValue:
    """A value to enter before the server can work; `fields` are where it is used."""

    name: str
    fields: tuple[str, ...]
    description: str = ""
    default: str = ""
    is_secret: bool = True
    choices: tuple[str, ...] = ()


@dataclass(slots=True)
class Inputs:
    """The inputs that VS Code would ask for, by ID."""

    declared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Any) -> "Inputs":
        entries = value if isinstance(value, list) else []
        return cls({str(e["id"]): e for e in entries if isinstance(e, Mapping) and "id" in e})

    def describe(self, name: str, fields: tuple[str, ...]) -> MissingValue:
        declared = self.declared.get(name, {})
        choices = declared.get("options")
        listed = choices if isinstance(choices, list) else []
        is_kept_secret = bool({"env", "headers"} & {*fields} or SECRET_NAME.search(name))
        return MissingValue(
            name=name,
            fields=fields,
            description=_text(declared.get("description"))[:200],
            default=_text(declared.get("default")),
            is_secret=bool(declared.get("password")) if declared else is_kept_secret,
            choices=tuple(choice for choice in listed if isinstance(choice, str)),
        )


class Resolver:
    """Fills in the variables of one entry, and notes those that are missing."""

    def __init__(self, env: Mapping[str, str], inputs: Inputs) -> None:
        self._env = env
        self._inputs = inputs
        self._missing: dict[str, list[str]] = {}
        # Variables can double each other, or repeat a long value.
        self._expansions_left = MAX_EXPANSIONS
        self._chars_left = MAX_EXPANDED_CHARS

    @property
    def missing(self) -> list[MissingValue]:
        return [
            self._inputs.describe(name, tuple(fields)) for name, fields in self._missing.items()
        ]

    def resolve_secret(self, field_name: str, name: str, text: str) -> str:
        """Return a value of `env` or `headers`, in which a placeholder counts as missing."""
        resolved = self._expand(field_name, text, {name} if field_name == "env" else set())
        match = SCHEME.match(resolved)
        scheme = match[0] if match else ""
        value = resolved[len(scheme) :].strip()
        is_secret = bool(scheme or SECRET_NAME.search(name))
        if BLANK.fullmatch(value) or (is_secret and SECRET_BLANK.fullmatch(value)):
            return f"{scheme}{self._ask(field_name, name)}"
        return ANGLED.sub(lambda _: self._ask(field_name, name), resolved)

    def resolve_plain(self, field_name: str, text: str) -> str:
        """Return an argument or a URL, in which only obvious placeholders count."""
        return YOURS.sub(
            lambda match: self._ask(field_name, match[0].strip("<>")),
            self._expand(field_name, text, set()),
        )

    def _expand(self, field_name: str, text: str, outer: set[str]) -> str:
        """Return the text with its variables; `outer` are those that it is the value of."""
        pieces = []
        end = 0
        for match in REFERENCE.finditer(text):
            pieces.append(self._expand_bare(field_name, text, end, match.start(), outer))
            end = match.end()
            name = next(filter(None, (match[group] for group in NAME_GROUPS)))
            if match["kind"] != "input" and self._can_expand(name, outer):
                pieces.append(self._expand(field_name, self._env[name], {*outer, name}))
            elif match["default"] is not None:
                pieces.append(match["default"])
            else:
                pieces.append(self._ask(field_name, name))
        pieces.append(self._expand_bare(field_name, text, end, len(text), outer))
        return "".join(pieces)

    def _expand_bare(
        self, field_name: str, text: str, start: int, end: int, outer: set[str]
    ) -> str:
        """Return what is between two references, with the variables in it."""
        between = text[start:end]

        def fill(match: re.Match[str]) -> str:
            name = match["bare"]
            if self._can_expand(name, outer):
                return self._expand(field_name, self._env[name], {*outer, name})
            is_whole = WHOLE_BARE.match(between) and match.start() == 0
            return self._ask(field_name, name) if is_whole else match[0]

        return BARE.sub(fill, between)

    def _can_expand(self, name: str, outer: set[str]) -> bool:
        self._expansions_left -= 1
        if name not in self._env or name in outer:
            return False
        self._chars_left -= len(self._env[name])
        return self._expansions_left > 0 and self._chars_left > 0

    def _ask(self, field_name: str, name: str) -> str:
        short = re.sub(r"[^\w.-]+", "_", name).strip("_")[:MAX_NAME_CHARS] or "value"
        fields = self._missing.setdefault(short, [])
        if field_name not in fields:
            fields.append(field_name)
        return f"${{{short}}}"


NAME_GROUPS = ("secret", "id", "name", "opencode", "curly")


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Return the text with entered values; others stay as `${NAME}`."""

    def fill(match: re.Match[str]) -> str:
        value = values.get(match[1]) or match[0]
        scheme = SCHEME.match(value)
        # "Bearer" is often copied along with the token.
        is_doubled = scheme and text[: match.start()].lower().endswith(scheme[0].lower())
        return value[scheme.end() :] if scheme and is_doubled else value

    return CANONICAL.sub(fill, text)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
