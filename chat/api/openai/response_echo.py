"""What a response repeats of its request, and the functions that may be called."""

from collections.abc import Sequence
from typing import Any

from agents.models import Agent

from ..client_tools import Function
from .response_schemas import ResponseRequest, ResponseTool, TextFormat, ToolSelection


def echo_of(body: ResponseRequest, agent: Agent) -> dict[str, Any]:
    """Return the fields of a request as every response has them."""
    reasoning = body.reasoning
    choice = body.tool_choice or "auto"
    return {
        "model": agent.name,
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "tools": [_tool(tool) for tool in body.tools or ()],
        "tool_choice": _selection(choice)
        if isinstance(choice, ToolSelection)
        else choice or "auto",
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "truncation": body.truncation or "auto",
        "text": {"format": _format(body.text.format if body.text is not None else None)},
        "temperature": 1.0 if body.temperature is None else body.temperature,
        "top_p": 1.0 if body.top_p is None else body.top_p,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "reasoning": {
            "effort": reasoning.effort if reasoning is not None else None,
            "summary": reasoning.summary if reasoning is not None else None,
        },
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": body.max_tool_calls,
        "store": body.store is not False,
        "background": bool(body.background),
        "service_tier": "default",
        "metadata": body.metadata or {},
        "safety_identifier": body.safety_identifier,
        "prompt_cache_key": body.prompt_cache_key,
    }


def functions_of(body: ResponseRequest) -> tuple[Sequence[Function], str]:
    """Return the functions that the agent gets, and what its instructions say of them."""
    functions: list[ResponseTool] = [
        tool for tool in body.tools or () if tool.type == "function"
    ]
    choice = body.tool_choice
    advice = ""
    if isinstance(choice, ToolSelection):
        if choice.type == "allowed_tools":
            allowed = {tool.name for tool in choice.tools or ()}
            functions = [tool for tool in functions if tool.name in allowed]
            choice = choice.mode
        elif choice.name:
            advice = f"Call the function {choice.name[:64]} before you answer."
    if choice == "required" and functions:
        advice = "Call one of the program's functions before you answer."
    return ([], "") if choice == "none" else (functions, advice)


def _tool(tool: ResponseTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }


def _selection(choice: ToolSelection) -> dict[str, Any]:
    if choice.type == "function":
        return {"type": "function", "name": choice.name or ""}
    tools = [{"type": "function", "name": tool.name} for tool in choice.tools or ()]
    return {"type": "allowed_tools", "tools": tools, "mode": choice.mode}


def _format(format: TextFormat | None) -> dict[str, Any]:
    if format is None or format.type != "json_schema":
        return {"type": format.type if format is not None else "text"}
    return {
        "type": "json_schema",
        "name": format.name,
        "description": format.description,
        "schema": format.schema_,
        "strict": bool(format.strict),
    }
