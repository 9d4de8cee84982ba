"""What a new tool needs besides its own test: see the recipe in CONTRIBUTING.md."""

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from django.utils import translation

import agents.tools
from agents.catalog.tools.tool_factory import BUILT_IN_TOOLS
from agents.db.sentences import translate
from agents.engine.json_schema import validate_schema
from agents.engine.tool import Effect, Tool


def tool_classes():
    """Classes of `agents.tools` that have a name and can be executed."""
    for module in pkgutil.walk_packages(agents.tools.__path__, "agents.tools."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if hasattr(found, "execute") and isinstance(getattr(found, "name", None), str):
                yield found


def test_every_tool_class_with_a_name_is_built_in():
    assert {found.name for found in tool_classes()} >= {"calculator", "database", "search"}
    assert {found.name for found in tool_classes()} <= set(BUILT_IN_TOOLS)


@pytest.mark.parametrize("name", sorted(BUILT_IN_TOOLS))
def test_a_built_in_tool_is_complete_and_has_its_own_name(name):
    tool = BUILT_IN_TOOLS[name]()

    assert isinstance(tool, Tool)
    assert tool.name == name
    assert tool.description
    assert tool.effect in get_args(Effect)
    assert validate_schema(tool.parameters)


@pytest.mark.parametrize("name", sorted({*BUILT_IN_TOOLS} - {"database"}))  # names its tables
def test_administrators_read_what_a_built_in_tool_does_in_their_language(name):
    description = BUILT_IN_TOOLS[name]().description

    with translation.override("ja"):
        assert translate(description) != description, "Make it a Sentence; translate it."


def test_the_readme_lists_every_built_in_tool():
    readme = Path("README.md").read_text()

    assert [name for name in BUILT_IN_TOOLS if f"| `{name}` |" not in readme] == []
