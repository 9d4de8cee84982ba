"""Patterns that all supported versions of Python read alike."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from chat.transfer.imports.formats.open_webui import DETAILS
from chat.transfer.imports.json_stream import STRING_PART

parser = import_module("re._parser")
POSSESSIVE = {parser.POSSESSIVE_REPEAT, parser.ATOMIC_GROUP}
BACKTRACKING = {parser.MAX_REPEAT, parser.MIN_REPEAT, parser.BRANCH}


def operations(value, inside=frozenset()):
    """Yield every operation of a parsed pattern, with those around it."""
    if isinstance(value, parser.SubPattern | list | tuple):
        name = value[0] if isinstance(value, tuple) and value else None
        if isinstance(name, type(parser.BRANCH)):
            yield name, inside
            inside = inside | {name}
        for part in value:
            yield from operations(part, inside)


def is_misread(pattern, flags=0):
    """Whether a possessive group backtracks, which Python before 3.11.5 matches wrongly."""
    return any(
        name in BACKTRACKING and inside & POSSESSIVE
        for name, inside in operations(parser.parse(pattern, flags))
    )


def patterns():
    """Yield the names and patterns of all modules that have a possessive one."""
    for file in sorted(Path().glob("[acp]*/**/*.py")):
        if re.search(r"[*+?}]\+|\(\?>", file.read_text()) and "migrations" not in file.parts:
            module = import_module(".".join(file.with_suffix("").parts))
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    yield f"{module.__name__}.{name}", value


def test_no_possessive_group_of_a_pattern_backtracks():
    found = dict(patterns())
    misread = [
        name for name, pattern in found.items() if is_misread(pattern.pattern, pattern.flags)
    ]
    assert "chat.transfer.imports.json_stream.STRING_PART" in found
    assert misread == []


@pytest.mark.parametrize("pattern", [r"(?:ab|c)*+", r"(?:ab?c)++", r"(?>a*)", r"(?:(?!x+).)*+"])
def test_a_possessive_group_that_backtracks_is_recognized(pattern):
    assert is_misread(pattern)


def test_details_of_open_webui_end_at_their_own_end():
    text = 'A <details type="reasoning"><b>x</b> < y</details> B</details>'
    assert DETAILS.findall(text) == ['<details type="reasoning"><b>x</b> < y</details>']


@pytest.mark.parametrize(
    ("text", "end"), [(b'abc"', 3), (b'a\\"b"', 4), (b'\\\\"', 2), (b"a\\", 1), (b'"', 0)]
)
def test_a_string_ends_at_the_first_quote_that_is_not_escaped(text, end):
    assert STRING_PART.match(text).end() == end
