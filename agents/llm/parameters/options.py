"""The parameters that each provider accepts, by name."""

import re
from collections.abc import Mapping

from agents.engine.sentences import Sentence as _

from .value_rules import (
    BOOLEAN,
    CREDENTIAL,
    DURATION,
    FLAT_OBJECT,
    INTEGER,
    NUMBER,
    NUMBER_OBJECT,
    POSITIVE_INTEGER,
    REASONING_EFFORT,
    SHORT_TEXT,
    SHORT_TEXT_LIST,
    SLUG_LIST,
    STOP_SEQUENCES,
    THINKING,
    URL_VALUE,
    ValueRule,
    is_service_account,
    list_of,
    object_of,
    one_of,
    pattern_rule,
)

AWS_PREFIXES = frozenset({"bedrock", "sagemaker", "sagemaker_chat"})
ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)
REGION = re.compile(r"[a-z]{2,5}(?:-[a-z]+)+-\d{1,2}")
LOCATION = re.compile(r"[a-z]+-[a-z]+\d{1,2}|global|us|eu")
PROJECT = re.compile(r"[a-z][a-z0-9.:-]{2,62}[a-z0-9]")
API_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-preview)?|v1|latest|preview")
# Parameters that any provider accepts.
SAMPLING_PARAMETERS = {
    **dict.fromkeys(("temperature", "top_p", "min_p"), NUMBER),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), NUMBER),
    **dict.fromkeys(("top_k", "seed"), INTEGER),
    "max_tokens": POSITIVE_INTEGER,
    "stop": STOP_SEQUENCES,
    **dict.fromkeys(("service_tier", "verbosity"), SHORT_TEXT),
    "reasoning_effort": REASONING_EFFORT,
    "thinking": THINKING,
    "parallel_tool_calls": BOOLEAN,
}
# Set by the engine itself, from schemas validated elsewhere.
ENGINE_PARAMETERS = frozenset({"tool_choice", "response_format"})
COMMON_OPTIONS = {
    **SAMPLING_PARAMETERS,
    "max_completion_tokens": POSITIVE_INTEGER,
    "logit_bias": NUMBER_OBJECT,
    "prompt_cache_retention": SHORT_TEXT,
    **dict.fromkeys(("user", "safety_identifier", "prompt_cache_key"), SHORT_TEXT),
    "store": BOOLEAN,
}
SELF_HOSTED_OPTIONS = {
    **dict.fromkeys(("repetition_penalty", "repeat_penalty", "length_penalty"), NUMBER),
    **dict.fromkeys(("top_a", "typical_p"), NUMBER),
    **dict.fromkeys(("min_tokens", "num_ctx", "num_predict", "thinking_budget"), INTEGER),
    **dict.fromkeys(("skip_special_tokens", "include_reasoning", "enable_thinking"), BOOLEAN),
    "chat_template_kwargs": FLAT_OBJECT,
    "think": one_of(_("true, false or a word"), BOOLEAN, SHORT_TEXT),
    "keep_alive": DURATION,
}
AWS_OPTIONS = {
    "aws_region_name": pattern_rule(_("a region, e.g. eu-central-1"), REGION),
    "aws_role_name": pattern_rule(_("a role ARN"), ROLE_ARN),
    "aws_session_name": pattern_rule(_("a name"), re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)),
    "aws_external_id": pattern_rule(_("an ID"), re.compile(r"[\w+=,.@-]{2,200}", re.ASCII)),
    "guardrailConfig": object_of(
        guardrailIdentifier=SHORT_TEXT, guardrailVersion=SHORT_TEXT, trace=SHORT_TEXT
    ),
}
GOOGLE_OPTIONS = {
    "safety_settings": list_of(
        _("a list of objects with category and threshold"),
        object_of(category=SHORT_TEXT, threshold=SHORT_TEXT),
    ),
}
AZURE_OPTIONS = {"api_version": pattern_rule(_("a version, e.g. 2024-10-21"), API_VERSION)}
THINKING_OPTIONS = {"enable_thinking": BOOLEAN, "thinking_budget": INTEGER}
OPENROUTER_PROVIDER = object_of(
    **dict.fromkeys(("order", "only", "ignore", "quantizations"), SLUG_LIST),
    **dict.fromkeys(("allow_fallbacks", "require_parameters", "zdr"), BOOLEAN),
    **dict.fromkeys(("data_collection", "sort"), SHORT_TEXT),
)
PROVIDER_OPTIONS: Mapping[str, Mapping[str, ValueRule]] = {
    **dict.fromkeys(("openai", "hosted_vllm", "lm_studio", "llamafile"), SELF_HOSTED_OPTIONS),
    **dict.fromkeys(
        ("ollama", "ollama_chat", "litellm_proxy", "openrouter"), SELF_HOSTED_OPTIONS
    ),
    **dict.fromkeys(("dashscope", "deepseek", "zai", "moonshot", "novita"), THINKING_OPTIONS),
    "openrouter": SELF_HOSTED_OPTIONS
    | {
        "provider": OPENROUTER_PROVIDER,
        **dict.fromkeys(("models", "transforms"), SLUG_LIST),
        "route": SHORT_TEXT,
        "reasoning": object_of(
            effort=SHORT_TEXT, max_tokens=INTEGER, exclude=BOOLEAN, enabled=BOOLEAN
        ),
    },
    "groq": {"reasoning_format": SHORT_TEXT, "include_reasoning": BOOLEAN},
    "mistral": {"safe_prompt": BOOLEAN},
    **dict.fromkeys(("cohere", "cohere_chat"), {"safety_mode": SHORT_TEXT}),
    "perplexity": {
        "search_domain_filter": SHORT_TEXT_LIST,
        **dict.fromkeys(("search_recency_filter", "search_mode"), SHORT_TEXT),
    },
    **dict.fromkeys(("azure", "azure_ai"), AZURE_OPTIONS),
    **dict.fromkeys(AWS_PREFIXES, AWS_OPTIONS),
    "bedrock": AWS_OPTIONS | {"aws_bedrock_runtime_endpoint": URL_VALUE},
    "gemini": GOOGLE_OPTIONS,
    "vertex_ai": GOOGLE_OPTIONS
    | {
        "vertex_project": pattern_rule(_("a project ID"), PROJECT),
        "vertex_location": pattern_rule(_("a location, e.g. europe-west1"), LOCATION),
    },
}
PROVIDER_SECRETS: Mapping[str, Mapping[str, ValueRule]] = {
    **dict.fromkeys(
        AWS_PREFIXES,
        dict.fromkeys(
            ("aws_access_key_id", "aws_secret_access_key", "aws_session_token"), CREDENTIAL
        ),
    ),
    "azure": {"azure_ad_token": CREDENTIAL},
    "vertex_ai": {
        "vertex_credentials": ValueRule(
            _("a service account key in JSON"), is_service_account, is_secret=True
        )
    },
}


def allowed_options(prefix: str) -> dict[str, ValueRule]:
    return {**COMMON_OPTIONS, **PROVIDER_OPTIONS.get(prefix, {})}
