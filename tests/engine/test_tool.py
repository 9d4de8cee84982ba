import pytest

from agents.engine import DuplicateToolError, Tool, ToolNotFoundError, ToolRegistry, ToolResult
from agents.engine.tool import specification, text_argument
from tests.engine.conftest import Echo


def test_tools_are_listed_by_name():
    registry = ToolRegistry([Echo("b"), Echo("a")])

    assert registry.list_tools() == ["a", "b"]
    assert registry.has("a")
    assert not registry.has("c")


def test_two_tools_of_one_name_are_refused():
    registry = ToolRegistry([Echo("a")])

    with pytest.raises(DuplicateToolError, match="'a'"):
        registry.register(Echo("a"))


def test_an_unknown_tool_is_named_with_those_there_are():
    with pytest.raises(ToolNotFoundError, match="'c'. Available tools: a, b."):
        ToolRegistry([Echo("b"), Echo("a")]).get("c")


def test_anything_with_a_name_a_description_and_execute_is_a_tool():
    assert isinstance(Echo(), Tool)
    assert not isinstance(object(), Tool)


def test_a_result_with_an_error_says_so():
    assert not ToolResult("fine").is_error
    assert ToolResult("", "broken").is_error
    assert ToolResult("", "broken").text == "Error: broken"


def test_the_model_is_told_of_a_tool_in_the_common_form():
    told = specification(Echo())

    assert told["type"] == "function"
    assert told["function"]["name"] == "echo"
    assert told["function"]["parameters"]["properties"] == {"text": {"type": "string"}}


@pytest.mark.parametrize("input", ["x", {"text": "x"}, {"input": "x"}])
def test_the_one_argument_is_found_however_it_was_written(input):
    assert text_argument(input, "text") == "x"
