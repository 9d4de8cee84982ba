"""Anthropic's Messages API: its requests, and its events as those of OpenAI's API."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2s
from typing import Any

from agents.engine.state import Message

from .. import model_info
from ..tuning import REASONING_TOKENS
from ..wire.sse import DONE
from .conversion import call_arguments, to_event

MESSAGES_PATH = "/v1/messages"
VERSION = {"anthropic-version": "2023-06-01"}
# A subscription's token instead of a key.
TOKEN_PREFIX = "sk-ant-oat"
TOKEN_BETA = {"anthropic-beta": "oauth-2025-04-20"}
DEFAULT_MAX_TOKENS = 8192  # of models that aren't listed; the API requires a number
MAX_UNSTREAMED_TOKENS = 21_333  # a longer reply has to be streamed
MIN_BUDGET = 1024
BUDGETS = {**REASONING_TOKENS, "minimal": MIN_BUDGET, "xhigh": 8192, "max": 16384}
CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
SERVICE_TIERS = ("auto", "standard_only")
# The first message has to be the user's, and it can't be blank.
PLACEHOLDER = {"type": "text", "text": "."}
THOUGHTS = ("thinking", "redacted_thinking")
# Keywords that the schema of a tool can't have at its top.
REJECTED_IN_TOOLS = frozenset({"$schema", "allOf", "anyOf", "oneOf"})
# Keywords that the schema of an answer can have.
ACCEPTED_IN_OUTPUT = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "default",
        "definitions",
        "description",
        "enum",
        "format",
        "items",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
SCHEMAS_BY_NAME = ("properties", "$defs", "definitions")
VALUES = ("const", "default", "enum")
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "compaction": "length",
    "refusal": "content_filter",
}
ERROR_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def headers(key: str | None) -> dict[str, str]:
    if not key:
        return VERSION
    if key.startswith(TOKEN_PREFIX):
        return {**VERSION, **TOKEN_BETA, "Authorization": f"Bearer {key}"}
    return {**VERSION, "x-api-key": key}


def build_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    options = {name: value for name, value in parameters.items() if value is not None}
    max_tokens = options.get("max_tokens") or options.get("max_completion_tokens")
    turns = _turns(messages)
    body: dict[str, Any] = {
        "model": model.partition("/")[2],
        "messages": turns,
        "max_tokens": max_tokens or model_info.max_output(model) or DEFAULT_MAX_TOKENS,
        "stream": True,
    }
    if system := [block for m in messages if m["role"] == "system" for block in _blocks(m)]:
        body["system"] = system
    if tools:
        body["tools"] = list(map(_tool, tools))
        if choice := _tool_choice(options):
            body["tool_choice"] = choice
    elif called_tools := _called_tools(turns):
        # A history with calls needs their tools, even if none can be called any more.
        body["tools"] = called_tools
        body["tool_choice"] = {"type": "none"}
    body |= _reasoning(model, body, options)
    if schema := (options.get("response_format") or {}).get("json_schema"):
        output_format = {"type": "json_schema", "schema": _output_schema(schema["schema"])}
        body["output_config"] = {**body.get("output_config", {}), "format": output_format}
    is_thinking = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
    if model_info.samples(model) and not is_thinking:
        body |= {
            name: options[name] for name in ("temperature", "top_p", "top_k") if name in options
        }
    stop = options.get("stop") or ()
    stops = [stop] if isinstance(stop, str) else stop
    if stops := [text for text in stops if text.strip()]:
        body["stop_sequences"] = stops
    if user := options.get("user"):
        body["metadata"] = {"user_id": user}
    if (tier := options.get("service_tier")) in SERVICE_TIERS:
        body["service_tier"] = tier
    return body


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages with alternating roles; results of tools are the user's."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        blocks = [] if message["role"] == "system" else _blocks(message)
        role = "assistant" if message["role"] == "assistant" else "user"
        if blocks and turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [PLACEHOLDER]})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    content = message.get("content") or ""
    text: list[dict[str, Any]] = [{"type": "text", "text": content}]
    for part in text if isinstance(content, str) else content:
        mark = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
        if part["type"] == "text" and part["text"].strip():  # blank ones are rejected
            blocks.append({"type": "text", "text": part["text"], **mark})
        elif part["type"] == "image_url":
            source = _image_source(part["image_url"]["url"])
            blocks.append({"type": "image", "source": source, **mark})
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": _call_id(message["tool_call_id"])}
        blocks = [{**result, "content": content if isinstance(content, str) else blocks}]
    if message["role"] == "assistant":
        # Signed thoughts come first, and unchanged.
        blocks = [*map(dict, message.get("thinking_blocks") or ()), *blocks]
        for call in message.get("tool_calls") or ():
            name = call["function"]["name"]
            block = {"type": "tool_use", "id": _call_id(call["id"]), "name": name}
            blocks.append({**block, "input": call_arguments(call)})
    if blocks and "cache_control" in message:
        blocks[-1]["cache_control"] = message["cache_control"]
    return blocks


def _image_source(url: str) -> dict[str, str]:
    head, _, data = url.partition(";base64,")
    if not head.startswith("data:"):
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}


def _call_id(id: str) -> str:
    """Return an id that is accepted; those of other providers can have other characters."""
    return id if CALL_ID.fullmatch(id) else blake2s(id.encode(errors="replace")).hexdigest()


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    schema = function.get("parameters") or {}
    schema = {name: value for name, value in schema.items() if name not in REJECTED_IN_TOOLS}
    converted = {
        "name": function["name"],
        "description": function.get("description") or "",
        "input_schema": {"type": "object", **schema},
    }
    mark = tool.get("cache_control")
    return {**converted, "cache_control": mark} if mark else converted


def _tool_choice(parameters: Mapping[str, Any]) -> dict[str, Any]:
    choice = parameters.get("tool_choice")
    converted: dict[str, Any] = {}
    if isinstance(choice, Mapping):
        converted = {"type": "tool", "name": choice["function"]["name"]}
    elif choice in TOOL_CHOICES:
        converted = {"type": TOOL_CHOICES[choice]}
    if parameters.get("parallel_tool_calls") is False and choice != "none":
        converted = {"type": "auto", **converted, "disable_parallel_tool_use": True}
    return converted


def _called_tools(turns: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    blocks = (block for turn in turns for block in turn["content"])
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _reasoning(
    model: str, body: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how the model thinks: new models as much as they need, others up to a budget."""
    effort = parameters.get("reasoning_effort")
    effort = effort.get("effort") if isinstance(effort, Mapping) else effort
    thinking = dict(parameters.get("thinking") or {})
    is_adaptive = model_info.thinks_adaptively(model)
    if not thinking and effort and effort != "none":
        thinking = {"type": "adaptive", "display": "summarized"}
    elif thinking.get("type") == "enabled" and model_info.takes_budget(model):
        is_adaptive = False
    elif thinking.get("type") == "enabled" and is_adaptive:
        budget = thinking.pop("budget_tokens", 0)
        efforts = (name for name in ("xhigh", "high", "medium") if budget >= BUDGETS[name])
        effort = next(efforts, "low")
        thinking["type"] = "adaptive"
    if thinking.get("type") in (None, "disabled"):
        return {"thinking": thinking} if thinking else {}
    has_forced_call = body.get("tool_choice", {}).get("type") in ("any", "tool")
    if is_adaptive:
        level = "low" if effort == "minimal" else effort
        config = {"output_config": {"effort": level}} if level else {}
        return config if has_forced_call else {"thinking": thinking, **config}
    budget = thinking.get("budget_tokens") or BUDGETS.get(effort or "", BUDGETS["medium"])
    if budget >= body["max_tokens"]:
        budget = body["max_tokens"] // 2
    if budget < MIN_BUDGET or has_forced_call or _continues_unsigned(body["messages"]):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _continues_unsigned(turns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether results follow calls without their thoughts, e.g. those of another model."""
    if len(turns) < 2 or turns[-1]["content"][0]["type"] != "tool_result":
        return False
    return turns[-2]["content"][0]["type"] not in THOUGHTS


def _output_schema(schema: Any, *, by_name: bool = False) -> Any:
    """Return the schema as the API accepts it; what it can't enforce goes into words."""
    if isinstance(schema, list):
        return [_output_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if by_name:
        return {name: _output_schema(value) for name, value in schema.items()}
    converted: dict[str, Any] = {}
    rules = {}
    for name, value in schema.items():
        keyword = "anyOf" if name == "oneOf" else name
        if keyword not in ACCEPTED_IN_OUTPUT:
            rules[keyword] = value
        elif keyword in VALUES:
            converted[keyword] = value
        else:
            by_name = keyword in SCHEMAS_BY_NAME
            converted[keyword] = _output_schema(value, by_name=by_name)
    rules.pop("$schema", None)
    if rules:
        descriptions = (schema.get("description"), json.dumps(rules, ensure_ascii=False))
        converted["description"] = " ".join(filter(None, descriptions))
    if schema.get("type") == "object":
        converted["additionalProperties"] = False
    return converted


class EventConverter:
    """Converts the events of one response."""

    def __init__(self) -> None:
        self._usage: dict[str, Any] = {}
        self._calls: dict[int, int] = {}  # position among the calls, by that of the block
        self._has_answered = False
        self._late_thoughts: set[int] = set()  # positions of blocks
        self._has_ended = False

    def convert(self, event: Any) -> Iterator[Any]:
        match event.get("type", "error"):
            case "content_block_delta":
                yield from self._read_delta(event["index"], event["delta"])
            case "content_block_start":
                yield from self._read_block(event["index"], event["content_block"])
            case "message_start":
                yield from self._read_message(event["message"])
            case "message_delta":
                self._add_usage(event)
                yield self._end(event["delta"].get("stop_reason"))
            case "message_stop":
                if self._calls and not self._has_ended:
                    raise EOFError  # a call may lack its arguments
                yield DONE
            case "message":  # a reply in one piece
                yield from self._read_message(event)
                for index, block in enumerate(event["content"]):
                    yield from self._read_block(index, block)
                yield self._end(event.get("stop_reason"))
            case "error":
                error = event["error"]
                status = ERROR_STATUSES.get(error.get("type"), error.get("code"))
                yield {"error": {**error, "code": status}}
            case "ping":
                yield {"choices": []}  # it is at work

    def _read_message(self, message: Mapping[str, Any]) -> Iterator[Any]:
        self._add_usage(message)
        yield {"id": message.get("id"), "model": message.get("model"), "choices": []}

    def _read_block(self, index: int, block: Mapping[str, Any]) -> Iterator[Any]:
        self._has_answered = self._has_answered or block["type"] not in THOUGHTS
        match block["type"]:
            case "text" if block["text"]:
                yield to_event({"content": block["text"]})
            case "thinking" | "redacted_thinking" if self._has_answered:
                # Sent back, it would come before the text and the calls, which is rejected.
                self._late_thoughts.add(index)
                yield to_event({"reasoning": block.get("thinking")})
            case "thinking" if block.get("thinking") or block.get("signature"):
                yield to_event({"thinking_blocks": [block]})
            case "redacted_thinking":
                yield to_event({"thinking_blocks": [block]})
            case "tool_use":
                self._calls[index] = len(self._calls)
                arguments = json.dumps(block["input"]) if block.get("input") else ""
                function = {"name": block["name"], "arguments": arguments}
                call = {"index": self._calls[index], "id": block["id"], "type": "function"}
                yield to_event({"tool_calls": [{**call, "function": function}]})

    def _read_delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Any]:
        match delta["type"]:
            case "text_delta":
                yield to_event({"content": delta["text"]})
            case "thinking_delta" if index in self._late_thoughts:
                yield to_event({"reasoning": delta["thinking"]})
            case "signature_delta" if index in self._late_thoughts:
                pass
            case "thinking_delta":
                yield to_event({"thinking_blocks": [{"thinking": delta["thinking"]}]})
            case "signature_delta":
                yield to_event({"thinking_blocks": [{"signature": delta["signature"]}]})
            case "input_json_delta" if delta["partial_json"] and index in self._calls:
                function = {"arguments": delta["partial_json"]}
                call = {"index": self._calls[index], "function": function}
                yield to_event({"tool_calls": [call]})

    def _add_usage(self, event: Mapping[str, Any]) -> None:
        """Add what is reported; the numbers at the end replace those at the start."""
        reported = event.get("usage") or {}
        self._usage |= {name: value for name, value in reported.items() if value is not None}

    def _end(self, reason: str | None) -> dict[str, Any]:
        usage = self._usage
        cached = usage.get("cache_read_input_tokens") or 0
        cache_writes = usage.get("cache_creation_input_tokens") or 0
        # Cached tokens aren't in the number of the input.
        prompt = (usage.get("input_tokens") or 0) + cached + cache_writes
        completion = usage.get("output_tokens") or 0
        reasoning = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
        self._has_ended = self._has_ended or bool(reason)
        chunk = to_event({}, FINISH_REASONS.get(reason or "", reason))
        chunk["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {
                "cached_tokens": cached,
                "cache_creation_tokens": cache_writes,
            },
        }
        if reasoning:
            chunk["usage"]["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        return chunk
