"""The two constant tools of a run with many tools: one finds others, one calls them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.engine.errors import AgentError
from agents.engine.json_schema import TooManyChecks, validate_schema, violations
from agents.engine.tool import (
    TEXT_INPUT_SCHEMA,
    Effect,
    Tool,
    ToolInput,
    ToolResult,
    text_argument,
)
from agents.engine.turn.tool_calls import ToolCall

from ..sentences import Sentence as _
from ..sentences import joined
from .selection import CALL_TOOL, FIND_TOOLS, MAX_FOUND, ToolSelector

MAX_SCHEMA_CHARS = 4_000


class FindToolsTool:
    """Finds tools that the model wasn't sent; their definitions are its result."""

    name = FIND_TOOLS
    description: str = _(
        "Find more tools by what they do or by their name, in any language. You have only been "
        "given the tools that seem to fit; there are others. The result has their names, "
        "descriptions and input schemas. Then call the tool by its name, or with call_tool if "
        "you can only call the tools of your list."
    )
    effect: Effect = "read"
    is_internal = True
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool should do, e.g. send an email.",
            }
        },
        "required": ["query"],
    }

    def __init__(self, selector: ToolSelector, tools: Callable[[], Sequence[Tool]]) -> None:
        self.selector = selector
        self.tools = tools

    async def execute(self, input: ToolInput, /) -> ToolResult:
        query = text_argument(input, "query").strip()
        if not query:
            return ToolResult(error=_("Say what the tool should do."), mendable=True)
        tools_found = await self.selector.search(self.tools(), query, MAX_FOUND)
        if not tools_found:
            return ToolResult(_("No tool fits. Try other words."))
        definitions = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": getattr(tool, "parameters", TEXT_INPUT_SCHEMA),
            }
            for tool in tools_found
        ]
        return ToolResult(json.dumps(definitions, ensure_ascii=False), is_data=True)


class CallToolTool:
    """Calls a tool that isn't in the list, for providers that reject other names.

    The run loop replaces such a call by the call of the named tool; only a call that names none
    is executed.
    """

    name = CALL_TOOL
    description: str = _(
        "Call a tool that find_tools has found, with arguments that match its input schema."
    )
    effect: Effect = "read"
    is_internal = True
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name."},
            "arguments": {"type": "object", "description": "Its arguments."},
        },
        "required": ["name", "arguments"],
    }

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return ToolResult(
            error=_("Give the name of a tool that find_tools has found."), mendable=True
        )


def unwrap(call: ToolCall) -> ToolCall:
    """Return the call that a call of `call_tool` stands for; others as they are."""
    if call.name != CALL_TOOL or not isinstance(input := call.readable, dict):
        return call
    name = input.get("name")
    if not isinstance(name, str) or not name.strip() or name.strip() == CALL_TOOL:
        return call
    # Some models put the arguments beside the name, or send them as text.
    beside_name = {key: value for key, value in input.items() if key != "name"}
    arguments = input.get("arguments", beside_name)
    is_text = isinstance(arguments, str)
    text = arguments if is_text else json.dumps(arguments, ensure_ascii=False)
    return replace(call, name=name.strip(), arguments=text or "{}")


def argument_error(tool: Tool, call: ToolCall) -> str:
    """Return why the arguments of a tool that wasn't sent can't be right, or nothing.

    Its model may have guessed them, so the sentence has the schema.
    """
    schema: Mapping[str, Any] = getattr(tool, "parameters", TEXT_INPUT_SCHEMA)
    try:
        problems = violations(validate_schema(schema), call.input)
    except (AgentError, TooManyChecks, RecursionError, ValueError):
        return ""  # the tool says it better
    if not problems:
        return ""
    text = json.dumps(schema, ensure_ascii=False, default=str)[:MAX_SCHEMA_CHARS]
    return _(
        "The arguments of %(tool)s don't match: %(words)s. Input schema: %(output)s",
        tool=tool.name,
        words=joined("; ", problems),
        output=text,
    )
