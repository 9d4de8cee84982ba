"""Variables and placeholders in a pasted configuration.

A variable is filled in from the entry's own `env`, or by the person who imports it, and never
from this process's environment. What is still missing is written as `${NAME}`.
"""

import re
from collections.abc import Callable, Mapping
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
    def read(cls, given: Any) -> "Inputs":
        entries = given if isinstance(given, list) else []
        named = {str(e["id"]): e for e in entries if isinstance(e, Mapping) and "id" in e}
        return cls(named)

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
        self._left, self._chars_left = MAX_EXPANSIONS, MAX_EXPANDED_CHARS

    @property
    def missing(self) -> list[MissingValue]:
        return [
            self._inputs.describe(name, tuple(fields)) for name, fields in self._missing.items()
        ]

    def resolve(self, where: str, text: str, own: str = "") -> str:
        """Return the text with its variables; `own` is the variable it belongs to, if any."""
        seen = frozenset({own} if own else ())
        return self._expand(where, text, seen)

    def resolve_secret(self, where: str, name: str, text: str) -> str:
        """Return a value of `env` or `headers`, in which a placeholder counts as missing."""
        resolved = self.resolve(where, text, own=name if where == "env" else "")
        scheme = found[0] if (found := SCHEME.match(resolved)) else ""
        rest = resolved[len(scheme) :].strip()
        is_secret = bool(scheme or SECRET_NAME.search(name))
        if BLANK.fullmatch(rest) or (is_secret and SECRET_BLANK.fullmatch(rest)):
            return f"{scheme}{self._ask(where, name)}"
        return ANGLED.sub(lambda _: self._ask(where, name), resolved)

    def resolve_plain(self, where: str, text: str) -> str:
        """Return an argument or a URL, in which only obvious placeholders count."""
        return YOURS.sub(
            lambda found: self._ask(where, found[0].strip("<>")), self.resolve(where, text)
        )

    def _expand(self, where: str, text: str, seen: frozenset[str]) -> str:
        def fill(found: re.Match[str]) -> str:
            parts = found.groupdict()
            name = next(filter(None, (parts[key] for key in NAME_GROUPS)))
            if parts["kind"] != "input" and self._is_known(name, seen):
                return self._expand(where, self._env[name], seen | {name})
            if parts["default"] is not None:
                return parts["default"]
            return self._ask(where, name)

        def fill_bare(found: re.Match[str]) -> str:
            name = found["bare"]
            if self._is_known(name, seen):
                return self._expand(where, self._env[name], seen | {name})
            is_whole = WHOLE_BARE.match(found.string) and found.start() == 0
            return self._ask(where, name) if is_whole else found[0]

        return _sub_outside(REFERENCE, fill, BARE, fill_bare, text)

    def _is_known(self, name: str, seen: frozenset[str]) -> bool:
        self._left -= 1
        if name not in self._env or name in seen:
            return False
        self._chars_left -= len(self._env[name])
        return self._left > 0 and self._chars_left > 0

    def _ask(self, where: str, name: str) -> str:
        short = re.sub(r"[^\w.-]+", "_", name).strip("_")[:MAX_NAME_CHARS] or "value"
        fields = self._missing.setdefault(short, [])
        if where not in fields:
            fields.append(where)
        return f"${{{short}}}"


NAME_GROUPS = ("secret", "id", "name", "opencode", "curly")


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Return the text with entered values; others stay as `${NAME}`."""

    def fill(found: re.Match[str]) -> str:
        value = values.get(found[1]) or found[0]
        scheme = SCHEME.match(value)
        # "Bearer" is often copied along with the token.
        is_doubled = scheme and text[: found.start()].lower().endswith(scheme[0].lower())
        return value[scheme.end() :] if scheme and is_doubled else value

    return CANONICAL.sub(fill, text)


def _sub_outside(
    first: re.Pattern[str],
    fill: Callable[[re.Match[str]], str],
    second: re.Pattern[str],
    fill_second: Callable[[re.Match[str]], str],
    text: str,
) -> str:
    """Replace the first pattern, and the second one only in what is between its matches."""
    pieces, place = [], 0
    for found in first.finditer(text):
        pieces += [second.sub(fill_second, text[place : found.start()]), fill(found)]
        place = found.end()
    return "".join([*pieces, second.sub(fill_second, text[place:])])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
