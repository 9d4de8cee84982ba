"""The handbook, from which the product answers, names what the product has and no more."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from agents.catalog.tools.tool_factory import BUILT_IN_TOOLS
from agents.knowledge.ingestion.documents import SUFFIXES
from chat.transfer.imports.formats import FORMATS
from project.environment import BASE_DIR, Environment

VARIABLES = {
    f"ASHIATO_{name.upper()}": field
    for name, field in Environment.model_fields.items()
    if field.validation_alias is None
}
CELL_NAMES = re.compile(r"`([^`]+)`")
# In italics or bold, with a capital letter; or several, as in *Account → Memory*.
LABEL = re.compile(r"(?<![*\w])\*{1,2}([A-Z][^*|]+)\*{1,2}")


def read(language: str, name: str = "*") -> str:
    pages = sorted((BASE_DIR / "docs" / "handbook" / language).glob(f"{name}.md"))
    return "\n".join(page.read_text() for page in pages)


def table_rows(text: str) -> list[list[str]]:
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_handbook_lists_the_built_in_tools(language):
    rows = table_rows(read(language, "tools"))

    assert {name for row in rows for name in CELL_NAMES.findall(row[0])} == set(BUILT_IN_TOOLS)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_handbook_lists_the_file_formats_that_can_be_read(language):
    rows = table_rows(read(language, "library"))

    assert {name for row in rows for name in CELL_NAMES.findall(row[-1])} == SUFFIXES


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_handbook_names_the_products_that_chats_are_imported_from(language):
    text = read(language, "chats")

    assert [each.name for each in FORMATS if each.name not in text] == []


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_handbook_lists_the_environment_variables(language):
    rows = table_rows(read(language, "configuration"))
    listed = [name for row in rows for name in re.findall(r"ASHIATO_\w+", row[0])]

    assert sorted(listed) == sorted(VARIABLES)
    assert set(re.findall(r"ASHIATO_\w+", read(language))) <= VARIABLES.keys()


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_handbook_states_the_defaults_of_the_environment_variables(language):
    wrong = {}
    for row in table_rows(read(language, "configuration")):
        names = re.findall(r"ASHIATO_\w+", row[0])
        stated = re.split(", |、", row[1])
        values = stated * len(names) if len(stated) == 1 else stated
        for name, value in zip(names, values, strict=True) if names else ():
            default = VARIABLES[name].default
            if type(default) in {bool, int, float} and name != "ASHIATO_METRICS_PORT":
                wrong |= {name: value} if value != str(default).lower() else {}

    assert wrong == {}


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_commands_in_the_handbook_exist(language):
    named = set(re.findall(r"manage\.py (\w+)", read(language)))

    assert named
    assert named <= get_commands().keys()


def test_the_pages_buttons_and_settings_in_the_handbook_exist():
    folders = [BASE_DIR / name for name in ("agents", "chat", "templates")]
    sources = [path for folder in folders for path in _sources(folder)]
    product = "\n".join(path.read_text() for path in sources).lower()
    handbook = " ".join(re.sub(r"```.*?```|`[^`]*`", "", read("en"), flags=re.DOTALL).split())
    labels = {part for label in LABEL.findall(handbook) for part in label.split(" → ")}
    headings = set(re.findall(r"^#+ (.*)$", read("en"), flags=re.MULTILINE))

    names = {label: label.rstrip("….").lower() for label in labels - headings}
    assert [label for label, name in names.items() if name not in product] == []


def _sources(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.suffix in {".py", ".html"} and "migrations" not in path.parts
    ]
