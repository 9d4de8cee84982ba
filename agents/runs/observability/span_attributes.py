"""Attributes of spans, by OpenTelemetry's conventions for generative AI."""

import json
from collections.abc import Mapping
from typing import Any

from agents.engine.privacy import mask_secrets
from agents.llm import parameters

from .trace_span import AttributeValue, TraceSpan

MAX_CONTENT_CHARS = 20_000
# Providers whose name in OpenTelemetry's conventions differs from the model prefix.
PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "codestral": "mistral_ai",
    "cohere_chat": "cohere",
    "demo": "ashiato",
    "gemini": "gcp.gemini",
    "hosted_vllm": "vllm",
    "llamafile": "llama.cpp",
    "mistral": "mistral_ai",
    "ollama_chat": "ollama",
    "sagemaker": "aws.sagemaker",
    "sagemaker_chat": "aws.sagemaker",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
# The same in OpenInference's conventions, by which Phoenix looks up prices.
OPENINFERENCE_PROVIDERS = {
    "azure": "azure",
    "azure_ai": "azure",
    "bedrock": "aws",
    "codestral": "mistralai",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "meta_llama": "meta",
    "mistral": "mistralai",
    "sagemaker": "aws",
    "sagemaker_chat": "aws",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "xai",
}
UNKNOWN_PROVIDER = "unknown"  # a label without a model behind it
# LiteLLM's own words between the provider and the name it sends.
ROUTES = {
    "azure": {"responses"},
    "bedrock": {"converse", "converse_like", "invoke"},
    "openai": {"responses"},
}
# Request parameters that the conventions name.
REQUEST_PARAMETERS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}


def kind_attributes(operation: str, kind: str) -> dict[str, AttributeValue]:
    """Return the kind, by both conventions that monitors read."""
    return {"gen_ai.operation.name": operation, "openinference.span.kind": kind}


def set_model(span: TraceSpan, request: Mapping[str, Any]) -> None:
    """Name the model that a chat span asks: the first one, or a fallback."""
    attributes = model_attributes(request)
    name = attributes["gen_ai.request.model"]
    span.name = f"chat {name}"
    span.attributes |= {**attributes, "llm.model_name": name}


def model_attributes(request: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the provider and its own name of the model: monitors price by these.

    Our label of the model means nothing to them and is a separate attribute.
    """
    label = request.get("model", "")
    full_name = parameters.full_name(request.get("provider_model") or label)
    prefix, slash, name = full_name.partition("/")
    if not slash:
        name = full_name
    route, _, routed_name = name.partition("/")
    if routed_name and route in ROUTES.get(prefix, ()):
        name = routed_name
    provider = PROVIDERS.get(prefix, prefix if slash else UNKNOWN_PROVIDER)
    return {
        "gen_ai.provider.name": provider,
        "gen_ai.system": provider,
        "gen_ai.request.model": name,
        "llm.provider": OPENINFERENCE_PROVIDERS.get(prefix, provider),
        "ashiato.model": label,
    }


def parameter_attributes(values: Mapping[str, Any]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        attribute: values[name]
        for name, attribute in REQUEST_PARAMETERS.items()
        if isinstance(values.get(name), int | float)
    }
    if stop := values.get("stop"):
        stop_sequences = [stop] if isinstance(stop, str) else stop
        attributes["gen_ai.request.stop_sequences"] = stop_sequences
    return attributes


def output_text(data: Mapping[str, Any]) -> str:
    return "\n\n".join(filter(None, (data.get("thought"), data.get("answer"))))


def genai_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message to the conventions' format."""
    content = message.get("content")
    parts = [{"type": "text", "content": content}] if content else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append({"type": "tool_call", "id": call["id"], **function})
    if message["role"] == "tool":
        parts = [
            {
                "type": "tool_call_response",
                "id": message.get("tool_call_id", ""),
                "response": content,
            }
        ]
    return {"role": message["role"], "parts": parts}


def serialize(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return mask_secrets(text[:MAX_CONTENT_CHARS])


def attribute_value(value: Any) -> AttributeValue:
    return value if isinstance(value, bool | int | float) else mask_secrets(str(value))
