"""ARCHITECTURE.md names what the code has."""

import re
from importlib import import_module

import pytest

from project.environment import BASE_DIR

TEXT = (BASE_DIR / "ARCHITECTURE.md").read_text()
STOPS = set(re.findall(r"`((?:agents|chat)\.[\w.]+)`", TEXT))
# The third column of the glossary; a name without a package is one of `agents`.
PLACES = {
    name if name.startswith("chat.") else f"agents.{name}"
    for row in re.findall(r"^\| .+ \| .+ \| (.+) \|$", TEXT.partition("## Glossary")[2], re.M)
    for name in re.findall(r"`([a-z]\w*(?:\.\w+)*)`", row)
}


@pytest.mark.parametrize("name", sorted(STOPS | PLACES))
def test_every_named_place_exists(name):
    """The longest part that is a module is imported, the rest are its attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            place = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            place = getattr(place, attribute)
        return
    pytest.fail(f"There is no {name}.")
