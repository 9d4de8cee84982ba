"""Gemini's generateContent API: its requests, and its events as those of OpenAI's API."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from agents.engine.state import Message

from .. import model_info
from ..tuning import REASONING_TOKENS
from .conversion import call_arguments, to_event

# Models before the third generation have a budget of thoughts, and no ids of calls.
OLD_MODEL = re.compile(r"gemini-[12]\b")
# What the API accepts for a call that another model made.
NO_SIGNATURE = "skip_thought_signature_validator"
PLACEHOLDER = {"role": "user", "parts": [{"text": "."}]}
MINIMAL_BUDGETS = {"gemini-2.5-flash-lite": 512, "gemini-2.5-flash": 1, "gemini-2.5-pro": 128}
CONFIG_NAMES = {
    "frequency_penalty": "frequencyPenalty",
    "max_completion_tokens": "maxOutputTokens",
    "max_tokens": "maxOutputTokens",
    "presence_penalty": "presencePenalty",
    "seed": "seed",
    "temperature": "temperature",
    "top_k": "topK",
    "top_p": "topP",
}
PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
SAMPLING = frozenset({"temperature", "top_k", "top_p"})
MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
DEFAULT_TIERS = ("auto", "default")
PROMPT_BLOCKED = "PROMPT_BLOCKED"  # ours: then there are no candidates
WITHHELD = (
    PROMPT_BLOCKED,
    "BLOCKLIST",
    "ESCALATION",
    "IMAGE_OTHER",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "LANGUAGE",
    "NO_IMAGE",
    "OTHER",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
)
FINISH_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "FINISH_REASON_UNSPECIFIED": "finish_reason_unspecified",
    "MISSING_THOUGHT_SIGNATURE": "finish_reason_unspecified",
    "TOO_MANY_TOOL_CALLS": "finish_reason_unspecified",
    "MALFORMED_FUNCTION_CALL": "malformed_function_call",
    "MALFORMED_RESPONSE": "malformed_function_call",
    "UNEXPECTED_TOOL_CALL": "malformed_function_call",
    **dict.fromkeys(WITHHELD, "content_filter"),
}


def headers(key: str | None) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}


def url(base_url: str, name: str, *, is_streaming: bool) -> str:
    method = "streamGenerateContent?alt=sse" if is_streaming else "generateContent"
    return f"{base_url}/models/{name}:{method}"


def build_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    options = {name: value for name, value in parameters.items() if value is not None}
    is_old = bool(OLD_MODEL.search(model))
    body: dict[str, Any] = {"contents": _contents(messages, is_old=is_old)}
    if system := [part for m in messages if m["role"] == "system" for part in _parts(m)]:
        body["systemInstruction"] = {"parts": system}
    if tools:
        declarations = [_declaration(tool["function"]) for tool in tools]
        body["tools"] = [{"functionDeclarations": declarations}]
        choice = options.get("tool_choice")
        if isinstance(choice, Mapping):
            names = [choice["function"]["name"]]
            calling: dict[str, Any] = {"mode": "ANY", "allowedFunctionNames": names}
            body["toolConfig"] = {"functionCallingConfig": calling}
        elif choice in MODES:
            body["toolConfig"] = {"functionCallingConfig": {"mode": MODES[choice]}}
    dropped = set() if is_old else set(PENALTIES)
    if not model_info.samples(model):
        dropped |= SAMPLING
    config = {
        CONFIG_NAMES[name]: value
        for name, value in options.items()
        if name in CONFIG_NAMES and name not in dropped
    }
    if stop := options.get("stop"):
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    if response_format := options.get("response_format"):
        config["responseMimeType"] = "application/json"
        if schema := response_format.get("json_schema"):
            config["responseJsonSchema"] = schema["schema"]
    if thinking := _thinking(model, options, is_old=is_old):
        config["thinkingConfig"] = thinking
    if config:
        body["generationConfig"] = config
    if safety := options.get("safety_settings"):
        body["safetySettings"] = safety
    if (tier := str(options.get("service_tier", "auto")).lower()) not in DEFAULT_TIERS:
        body["serviceTier"] = tier
    return body


def _contents(messages: Iterable[Message], *, is_old: bool) -> list[dict[str, Any]]:
    """Return the messages, joined with their neighbours of the same kind.

    Results of calls are the user's, but have to stand alone after the calls.
    """
    contents: list[dict[str, Any]] = []
    last_kind = ""
    tool_names: dict[str, str] = {}  # by the id of the call, which servers may use again
    for message in messages:
        kind = message["role"]
        if kind == "system":
            continue
        if kind == "tool":
            id = message["tool_call_id"]
            response = {"name": tool_names.get(id, ""), "response": _response(message)}
            parts = [{"functionResponse": response if is_old else {**response, "id": id}}]
        else:
            parts = _parts(message)
        if calls := message.get("tool_calls"):
            parts += _calls(calls, is_old=is_old)
            tool_names |= {call["id"]: call["function"]["name"] for call in calls}
        if parts and kind == last_kind:
            contents[-1]["parts"] += parts
        elif parts:
            role = "model" if kind == "assistant" else "user"
            contents.append({"role": role, "parts": parts})
            last_kind = kind
    if not contents or contents[0]["role"] == "model":
        contents.insert(0, PLACEHOLDER)
    return contents


def _parts(message: Message) -> list[dict[str, Any]]:
    """Return the parts of a message besides its calls; empty ones are rejected."""
    content = message.get("content") or ""
    text: list[dict[str, Any]] = [{"type": "text", "text": content}]
    items = text if isinstance(content, str) else content
    parts: list[dict[str, Any]] = []
    for item in items:
        match item["type"]:
            case "text" if item["text"]:
                parts.append({"text": item["text"]})
            case "image_url":
                parts.append(_image(item["image_url"]["url"]))
            case "input_audio":
                audio = item["input_audio"]
                inline = {"mimeType": f"audio/{audio['format']}", "data": audio["data"]}
                parts.append({"inlineData": inline})
    if signature := _text_signature(message):
        parts = parts or [{"text": ""}]
        parts[0]["thoughtSignature"] = signature
    return parts


def _image(address: str) -> dict[str, Any]:
    head, _, data = address.partition(";base64,")
    if not head.startswith("data:"):
        return {"fileData": {"fileUri": address}}
    return {"inlineData": {"mimeType": head.removeprefix("data:"), "data": data}}


def _text_signature(message: Message) -> str:
    """Return the signature of the text; LiteLLM lists those of the calls, too."""
    provider_fields = message.get("provider_specific_fields") or {}
    of_calls = {_call_signature(call) for call in message.get("tool_calls") or ()}
    signatures = provider_fields.get("thought_signatures") or ()
    return next((signature for signature in signatures if signature not in of_calls), "")


def _call_signature(call: Mapping[str, Any]) -> str:
    provider_fields = call.get("provider_specific_fields") or {}
    return str(provider_fields.get("thought_signature") or "")


def _calls(calls: Sequence[Mapping[str, Any]], *, is_old: bool) -> list[dict[str, Any]]:
    parts = []
    for index, call in enumerate(calls):
        function = {"name": call["function"]["name"], "args": call_arguments(call)}
        part: dict[str, Any] = {
            "functionCall": function if is_old else {**function, "id": call["id"]}
        }
        signature = _call_signature(call)
        if not signature and index == 0 and not is_old:
            signature = NO_SIGNATURE  # the first call of a turn needs one
        if signature:
            part["thoughtSignature"] = signature
        parts.append(part)
    return parts


def _response(message: Message) -> dict[str, Any]:
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(item["text"] for item in content if item["type"] == "text")
    return {"output": content}


def _declaration(function: Mapping[str, Any]) -> dict[str, Any]:
    declaration = {
        "name": function["name"],
        "description": function.get("description") or "",
    }
    schema = function.get("parameters") or {}
    if not schema.get("properties"):
        return declaration  # an object without properties is rejected by some models
    return {**declaration, "parametersJsonSchema": schema}


def _thinking(model: str, parameters: Mapping[str, Any], *, is_old: bool) -> dict[str, Any]:
    """Return how much the model thinks: up to a budget, or at a level since Gemini 3."""
    effort = parameters.get("reasoning_effort")
    effort = effort.get("effort") if isinstance(effort, Mapping) else effort
    if thinking := parameters.get("thinking"):
        budget = thinking.get("budget_tokens")
        is_on = thinking.get("type") != "disabled" and budget != 0
        if not is_old:
            return {"includeThoughts": is_on}
        budget = budget if is_on else 0
        return {"includeThoughts": is_on} | (
            {} if budget is None else {"thinkingBudget": budget}
        )
    if not effort:
        return {}
    is_on = effort not in ("none", "disable")
    if is_old:
        name = model.rpartition("/")[2]
        minimal = next((n for key, n in MINIMAL_BUDGETS.items() if name.startswith(key)), 128)
        budgets = {**REASONING_TOKENS, "minimal": minimal, "none": 0, "disable": 0}
        budget = budgets.get(effort, REASONING_TOKENS["high"])
        return {"thinkingBudget": budget, "includeThoughts": is_on}
    has_minimal = "flash" in model and model_info.takes_minimal_effort(model)
    level = effort if effort in REASONING_TOKENS else "high"
    if effort in ("minimal", "none", "disable"):
        level = "minimal" if has_minimal else "low"
    return {"thinkingLevel": level, "includeThoughts": is_on}


class EventConverter:
    """Converts the events of one response."""

    def __init__(self) -> None:
        self._call_count = 0
        self._has_ended = False

    def convert(self, event: Any) -> Iterator[Any]:
        if "error" in event:
            yield {"error": event["error"]}
            return
        candidate: Mapping[str, Any] = next(iter(event.get("candidates") or ()), {})
        content = candidate.get("content") or {}
        for part in content.get("parts") or ():
            if delta := self._delta(part):
                yield to_event(delta)
        reason = candidate.get("finishReason")
        if (event.get("promptFeedback") or {}).get("blockReason"):
            reason = PROMPT_BLOCKED
        self._has_ended = self._has_ended or bool(reason)
        if not self._has_ended:
            return  # every event reports the usage so far
        usage = event.get("usageMetadata")
        finish = FINISH_REASONS.get(reason, reason.lower()) if reason else None
        if finish == "stop" and self._call_count:
            finish = "tool_calls"
        yield {
            **to_event({}, finish),
            "id": event.get("responseId"),
            "model": event.get("modelVersion"),
            **({"usage": _usage(usage)} if usage else {}),
        }

    def _delta(self, part: Mapping[str, Any]) -> dict[str, Any]:
        signature = part.get("thoughtSignature")
        if call := part.get("functionCall"):
            function = {"name": call["name"], "arguments": json.dumps(call.get("args") or {})}
            # Old models send no ids.
            id = call.get("id") or f"call_{uuid4().hex[:24]}"
            converted = {"index": self._call_count, "id": id, "function": function}
            if signature:
                converted["provider_specific_fields"] = {"thought_signature": signature}
            self._call_count += 1
            return {"tool_calls": [converted]}
        delta: dict[str, Any] = {}
        if text := part.get("text"):
            delta["reasoning" if part.get("thought") else "content"] = text
        if signature:
            delta["provider_specific_fields"] = {"thought_signatures": [signature]}
        return delta


def _usage(reported: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage so far; thoughts are a part of the completion."""
    prompt = reported.get("promptTokenCount") or 0
    prompt += reported.get("toolUsePromptTokenCount") or 0
    thoughts = reported.get("thoughtsTokenCount") or 0
    completion = (reported.get("candidatesTokenCount") or 0) + thoughts
    audio = sum(
        detail.get("tokenCount") or 0
        for detail in reported.get("promptTokensDetails") or ()
        if detail.get("modality") == "AUDIO"
    )
    cached = reported.get("cachedContentTokenCount") or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": audio},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }
