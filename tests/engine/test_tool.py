import pytest

from agents.engine import DuplicateToolError, Tool, ToolNotFoundError, ToolRegistry, ToolResult
from agents.engine.tool import specification, text_argument
from tests.engine.conftest import Echo


def test_tools_are_listed_by_name():
    registry = ToolRegistry([Echo("b"), Echo("a")])

    assert registry.list_tools() == ["a", "b"]
    assert registry.has("a")
    assert not registry.has("c")


def test_two_tools_with_one_name_are_rejected():
    registry = ToolRegistry([Echo("a")])

    with pytest.raises(DuplicateToolError, match="'a'"):
        registry.register(Echo("a"))


def test_an_unknown_tool_error_lists_the_known_tools():
    with pytest.raises(ToolNotFoundError, match="'c'. Available tools: a, b."):
        ToolRegistry([Echo("b"), Echo("a")]).get("c")


def test_any_object_with_name_description_and_execute_is_a_tool():
    assert isinstance(Echo(), Tool)
    assert not isinstance(object(), Tool)


def test_a_result_with_an_error_is_an_error():
    assert not ToolResult("fine").is_error
    assert ToolResult("", "broken").is_error
    assert ToolResult("", "broken").text == "Error: broken"


def test_a_tool_is_described_in_the_openai_function_format():
    told = specification(Echo())

    assert told["type"] == "function"
    assert told["function"]["name"] == "echo"
    assert told["function"]["parameters"]["properties"] == {"text": {"type": "string"}}


@pytest.mark.parametrize("input", ["x", {"text": "x"}, {"input": "x"}])
def test_a_single_argument_is_found_in_any_notation(input):
    assert text_argument(input, "text") == "x"
