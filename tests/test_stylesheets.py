"""A class belongs to one stylesheet, because two would conflict."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SHEETS = Path(__file__).parents[1] / "static" / "css"
SHARED = "base.css"
# Its own layer: it makes what the others style large enough for fingers.
TOUCH = "touch.css"
# `{`, `}`, `;` and what precedes them; quoted text and comments may contain all three.
PARTS = re.compile(r"""/\*.*?\*/|((?:"[^"]*"|'[^']*'|[^{};"'/]|/(?!\*))*)([{};])""", re.DOTALL)
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")


def selectors(text: str) -> Iterator[str]:
    """Yield every selector of a sheet, with its parents."""
    around: list[list[str]] = []
    for part in PARTS.finditer(text):
        words, end = (part[1] or "").strip(), part[2]
        if end == "}":
            around.pop()
        elif end == "{":
            is_rule = not words.startswith("@")
            outer = next((each for each in reversed(around) if each), [""])
            found = [f"{o} {s}".strip() for o in outer for s in split_selectors(words)]
            around.append(found if is_rule else [])
            yield from found if is_rule else ()
    assert not around


def split_selectors(words: str) -> list[str]:
    """Return the selectors of a list, ignoring commas in brackets."""
    found, depth = [""], 0
    for character in words:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found]


def own_classes(text: str) -> set[str]:
    """Return the classes that a sheet styles on their own."""
    named = (set(CLASS.findall(selector)) for selector in selectors(text))
    return {next(iter(classes)) for classes in named if len(classes) == 1}


def shared_classes(sheets: dict[str, str]) -> dict[str, list[str]]:
    owners = defaultdict(list)
    for name, text in sorted(sheets.items()):
        for each in own_classes(text):
            owners[each].append(name)
    return {
        each: names for each, names in owners.items() if len(names) > 1 and SHARED not in names
    }


def test_no_two_stylesheets_style_the_same_class():
    """Name it after its component (.plan-changes), or nest it under one of your classes."""
    sheets = {
        path.name: path.read_text() for path in SHEETS.glob("*.css") if path.name != TOUCH
    }

    assert shared_classes(sheets) == {}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (".changes { color: red }", "@media print { .changes th { margin: 0 } }", {"changes"}),
        (".changes { color: red }", ".plan .changes { color: green }", set()),
        (".changes { color: red }", ".plan { > li { } .changes { color: green } }", set()),
        ("/* .a { } */ .b { content: '.c { }' }", ".a { } .c { }", set()),
        (".a, .b { }", ":is(.b, .c) { } li.a { }", {"a"}),
    ],
)
def test_a_class_styled_twice_is_found(one, other, found):
    assert set(shared_classes({"one.css": one, "other.css": other})) == found


def test_columns_are_addressed_by_name_not_by_position():
    """A new column would move the ones after it: use `[data-column="…"]`."""
    counted = re.compile(r"(?:\b(?:td|th)\b|\.columns)[^,{]*:nth-")

    found = [
        (sheet.name, selector)
        for sheet in sorted(SHEETS.glob("*.css"))
        for selector in selectors(sheet.read_text())
        if counted.search(selector)
    ]

    assert found == []
