"""Allowed parameters per provider, by name and value.

LiteLLM accepts hundreds of parameters. Some change the address or the key, and some values are
looked up in the environment, in files or at metadata services. So everything from a form, a
file or a row is checked here, and again right before each request.
"""

import ipaddress
import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from agents.engine.errors import ModelError
from agents.llm.providers import ModelProvider, find_provider, first_env

from . import model_info

MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 2_000
MAX_SECRET_CHARS = 20_000
MAX_ITEMS = 50
AWS_PREFIXES = frozenset({"bedrock", "sagemaker", "sagemaker_chat"})
GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token"
SERVICE_ACCOUNT_FIELDS = frozenset(
    {
        *("type", "project_id", "private_key_id", "private_key", "client_email", "client_id"),
        *("auth_uri", "token_uri", "auth_provider_x509_cert_url", "client_x509_cert_url"),
        "universe_domain",
    }
)
# LiteLLM's table has other names for some providers than its model prefixes.
TABLE_PREFIXES = {"bedrock_converse": "bedrock", "vertex_ai-language-models": "vertex_ai"}

MODEL_NAME = re.compile(r"[A-Za-z0-9_-]+/[\w.:@~+/()=,-]*[\w)]", re.ASCII)
REFERENCE_PATTERN = re.compile(r"\s*(?:oidc/|file:)|.*os\.environ/", re.IGNORECASE | re.DOTALL)
FILE_PATH = re.compile(r"\s*(?:~?/|\.{1,2}/|[A-Za-z]:[\\/]|\\\\)")
ARN = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d{12}:[\w/.:-]+", re.ASCII)
ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)
REGION = re.compile(r"[a-z]{2,5}(?:-[a-z]+)+-\d{1,2}")
LOCATION = re.compile(r"[a-z]+-[a-z]+\d{1,2}|global|us|eu")
PROJECT = re.compile(r"[a-z][a-z0-9.:-]{2,62}[a-z0-9]")
BASETEN_DEPLOYMENT = re.compile(r"[A-Za-z0-9]{8}")
API_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-preview)?|v1|latest|preview")
VISIBLE_ASCII = re.compile(r"[!-~]+")
WORD_PATTERN = re.compile(r"[A-Za-z0-9_][\w .:+-]{0,99}", re.ASCII)
SLUG_PATTERN = re.compile(r"[A-Za-z0-9_~][\w./:~+@-]{0,199}", re.ASCII)


class SettingNotAllowed(ModelError):
    """This model has a setting that isn't allowed."""

    advice = "Contact your administrator, or choose another agent."


class UnknownProvider(SettingNotAllowed):
    """Unknown provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model is reached, and additional request parameters."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str = ""
    region: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def litellm_options(self) -> dict[str, Any]:
        """The options and dedicated fields, under LiteLLM's names."""
        own = {"api_version": self.api_version, "aws_region_name": self.region}
        return {**{name: value for name, value in own.items() if value}, **self.options}


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A rule for values, as text and as a test."""

    words: str
    fits: Callable[[Any], bool]
    is_address: bool = False
    is_secret: bool = False


# Shapes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_CHARS


def _pattern_rule(words: str, pattern: re.Pattern[str]) -> ValueRule:
    return ValueRule(
        words, lambda value: isinstance(value, str) and bool(pattern.fullmatch(value))
    )


def _list_of(words: str, shape: ValueRule) -> ValueRule:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, list) and len(value) <= MAX_ITEMS and all(map(shape.fits, value))
        )

    return ValueRule(words, fits)


def _object_of(**shapes: ValueRule) -> ValueRule:
    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in shapes and shapes[name].fits(item) for name, item in value.items()
        )

    return ValueRule(f"an object with {', '.join(sorted(shapes))}", fits)


def _one_of(words: str, *shapes: ValueRule) -> ValueRule:
    return ValueRule(words, lambda value: any(shape.fits(value) for shape in shapes))


def _is_flat_object(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MAX_ITEMS
        and all(isinstance(name, str) and WORD_PATTERN.fullmatch(name) for name in value)
        and all(
            isinstance(item, bool) or _is_number(item) or _is_word(item)
            for item in value.values()
        )
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(WORD_PATTERN.fullmatch(value))


def _is_credential(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= MAX_SECRET_CHARS
        and bool(VISIBLE_ASCII.fullmatch(value))
        and not REFERENCE_PATTERN.match(value)
    )


def _is_service_account(value: Any) -> bool:
    """Whether it is a service account key.

    Other kinds read files, call hosts or run programs.
    """
    if not isinstance(value, str) or len(value) > MAX_SECRET_CHARS:
        return False
    try:
        data = json.loads(value)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(data, dict)
        and data.keys() <= SERVICE_ACCOUNT_FIELDS
        and all(isinstance(item, str) for item in data.values())
        and data.get("type") == "service_account"
        and data.get("token_uri", GOOGLE_TOKEN_URL) == GOOGLE_TOKEN_URL
        and data.get("universe_domain", "googleapis.com") == "googleapis.com"
    )


NUMBER = ValueRule("a number", _is_number)
INTEGER = ValueRule("a whole number", _is_integer)
POSITIVE_INTEGER = ValueRule(
    "a whole number above 0", lambda value: _is_integer(value) and value > 0
)
BOOLEAN = ValueRule("true or false", lambda value: isinstance(value, bool))
TEXT = ValueRule(f"text (max {MAX_TEXT_CHARS} characters)", _is_text)
SHORT_TEXT = ValueRule("a word", _is_word)
SHORT_TEXT_LIST = _list_of("a list of words", SHORT_TEXT)
SLUG_LIST = _list_of("a list of names", _pattern_rule("a name", SLUG_PATTERN))
FLAT_OBJECT = ValueRule("an object with text, number or true/false values", _is_flat_object)
NUMBER_OBJECT = ValueRule(
    "an object with number values",
    lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
)
STOP_SEQUENCES = ValueRule(
    "text or a list of text values",
    lambda value: (
        _is_text(value)
        or (isinstance(value, list) and len(value) <= MAX_ITEMS and all(map(_is_text, value)))
    ),
)
DURATION_WORDS = "a number of seconds or a duration, e.g. 30s or 5m"
DURATION = _one_of(
    DURATION_WORDS, NUMBER, _pattern_rule(DURATION_WORDS, re.compile(r"-?\d{1,6}[smh]?"))
)
CREDENTIAL = ValueRule("the secret itself, without spaces", _is_credential, is_secret=True)
URL_VALUE = ValueRule(
    "a full URL, e.g. https://host/v1",
    lambda value: isinstance(value, str) and not address_problem(value),
    is_address=True,
)
REASONING_EFFORT = _one_of(
    "a word, or an object with effort and summary",
    SHORT_TEXT,
    _object_of(effort=SHORT_TEXT, summary=SHORT_TEXT),
)
THINKING = _object_of(type=SHORT_TEXT, budget_tokens=INTEGER, display=SHORT_TEXT)

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
    "think": _one_of("true, false or a word", BOOLEAN, SHORT_TEXT),
    "keep_alive": DURATION,
}
AWS_OPTIONS = {
    "aws_region_name": _pattern_rule("a region, e.g. eu-central-1", REGION),
    "aws_role_name": _pattern_rule("a role ARN", ROLE_ARN),
    "aws_session_name": _pattern_rule("a name", re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)),
    "aws_external_id": _pattern_rule("an ID", re.compile(r"[\w+=,.@-]{2,200}", re.ASCII)),
    "guardrailConfig": _object_of(
        guardrailIdentifier=SHORT_TEXT, guardrailVersion=SHORT_TEXT, trace=SHORT_TEXT
    ),
}
GOOGLE_OPTIONS = {
    "safety_settings": _list_of(
        "a list of objects with category and threshold",
        _object_of(category=SHORT_TEXT, threshold=SHORT_TEXT),
    ),
}
AZURE_OPTIONS = {"api_version": _pattern_rule("a version, e.g. 2024-10-21", API_VERSION)}
THINKING_OPTIONS = {"enable_thinking": BOOLEAN, "thinking_budget": INTEGER}
OPENROUTER_PROVIDER = _object_of(
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
        "reasoning": _object_of(
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
        "vertex_project": _pattern_rule("a project ID", PROJECT),
        "vertex_location": _pattern_rule("a location, e.g. europe-west1", LOCATION),
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
            "a service account key in JSON", _is_service_account, is_secret=True
        )
    },
}
# Options that change the host or the account of a request.
DESTINATION_OPTIONS = frozenset(
    {
        *(
            "aws_region_name",
            "aws_role_name",
            "aws_external_id",
            "aws_bedrock_runtime_endpoint",
        ),
        *("vertex_project", "vertex_location", "api_version"),
    }
)


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A problem and the field of `ModelSettings` it concerns."""

    field: str
    sentence: str
    is_unknown_provider: bool = False


def check(settings: ModelSettings, request: Mapping[str, Any] | None = None) -> None:
    """Raise SettingNotAllowed if a request with these parameters must not be made."""
    for problem in find_problems(settings):
        kind = UnknownProvider if problem.is_unknown_provider else SettingNotAllowed
        raise kind(problem.sentence)
    prefix = provider_prefix(settings.model)
    options = {n: value for n, value in (request or {}).items() if n not in ENGINE_PARAMETERS}
    for _, sentence in _problems_by_name(options, allowed_options(prefix), prefix):
        raise SettingNotAllowed(sentence)


def find_problems(settings: ModelSettings) -> Iterator[SettingProblem]:
    """Yield all problems, without any values."""
    if sentence := name_problem(settings.model):
        is_unknown = _find_provider(settings.model) is None
        yield SettingProblem("model", sentence, is_unknown)
        return
    prefix = provider_prefix(settings.model)
    if settings.base_url and (sentence := address_problem(settings.base_url)):
        yield SettingProblem("base_url", sentence)
    if settings.base_url and prefix in AWS_PREFIXES | {"vertex_ai"}:
        yield SettingProblem("base_url", REGION_SETS_ADDRESS)
    if settings.api_key and not _is_credential(settings.api_key):
        yield SettingProblem("api_key", REFERENCE_NOT_ALLOWED.format(name="The API key"))
    if settings.api_version and prefix not in ("azure", "azure_ai"):
        yield SettingProblem(
            "api_version", f"{provider_label(prefix)} doesn't use an API version."
        )
    if settings.region and prefix not in AWS_PREFIXES:
        yield SettingProblem("region", f"{provider_label(prefix)} doesn't use a region.")
    yield from _option_problems(settings, prefix)
    yield from _field_problems(
        settings.secrets, PROVIDER_SECRETS.get(prefix, {}), "secrets", prefix
    )
    yield from _field_problems(settings.parameters, SAMPLING_PARAMETERS, "parameters", prefix)
    if "aws_bedrock_runtime_endpoint" in settings.litellm_options and not _has_own_key(
        settings
    ):
        yield SettingProblem("options", NEEDS_OWN_KEY)


@lru_cache(maxsize=256)
def name_problem(model: str) -> str:
    """Return why a model name is invalid, or an empty string."""
    if (provider := _find_provider(model)) is None:
        prefix = _truncate(model.partition("/")[0]) if "/" in model else ""
        words = UNKNOWN_PROVIDER if prefix else MISSING_PROVIDER
        return words.format(name=prefix or _truncate(model))
    name = full_name(model)
    rest = name.partition("/")[2]
    parts = rest.split("/")
    is_plain = bool(MODEL_NAME.fullmatch(name)) and len(name) <= MAX_NAME_CHARS
    # A server that gets the name in the body may use a file path as the name.
    is_path = rest.startswith("/") and provider.speaks_openai
    has_gap = "" in (parts[1:] if is_path else parts)
    is_elsewhere = REFERENCE_PATTERN.match(rest) or (FILE_PATH.match(rest) and not is_path)
    if not is_plain or has_gap or is_elsewhere or {".", ".."} & {*parts}:
        return INVALID_NAME
    if "arn:" in rest and not ARN.fullmatch(rest[rest.index("arn:") :]):
        return INVALID_NAME
    return ""


def address_problem(address: str) -> str:
    """Return why a URL is invalid, or an empty string."""
    return _check_address(address)


@lru_cache(maxsize=256)
def _check_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_whole = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        return INVALID_ADDRESS
    if not is_whole or any(c.isspace() or not c.isprintable() for c in address):
        return INVALID_ADDRESS
    if "@" in parts.netloc:
        return ADDRESS_HAS_PASSWORD
    if parts.fragment or "\\" in address:
        return INVALID_ADDRESS
    return METADATA_ADDRESS if _is_metadata_host(parts.hostname or "") else ""


def destination(settings: ModelSettings, provider: str = "") -> tuple[Any, ...]:
    """Return where a request goes and for whom: a secret for one isn't valid for another."""
    merged = settings.litellm_options
    routes = tuple(sorted((n, repr(v)) for n, v in merged.items() if n in DESTINATION_OPTIONS))
    address = (settings.base_url or "").rstrip("/")
    return provider, _model_location(settings.model), address, routes


def provider_prefix(model: str) -> str:
    return full_name(model).partition("/")[0]


def provider_label(prefix: str) -> str:
    provider = find_provider(f"{prefix}/")
    return provider.label if provider else prefix


def full_name(model: str) -> str:
    """Return the name with its provider prefix, if LiteLLM's table knows it."""
    if "/" in model:
        return model
    listed = model_info.provider(model)
    return f"{TABLE_PREFIXES.get(listed, listed)}/{model}" if listed else model


def has_custom_address(settings: ModelSettings) -> bool:
    """Whether the address is neither the provider's nor from the environment."""
    return bool(settings.base_url) or "aws_bedrock_runtime_endpoint" in settings.litellm_options


def allowed_options(prefix: str) -> dict[str, ValueRule]:
    return {**COMMON_OPTIONS, **PROVIDER_OPTIONS.get(prefix, {})}


def resolve_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the key to send.

    LiteLLM always gets one, so that it doesn't look for one itself. A key of the environment is
    only sent to its own provider, at the provider's address or one from the environment. None
    leaves the choice to LiteLLM, for providers that authenticate a machine by other means.
    """
    prefix, provider = provider_prefix(settings.model), _find_provider(settings.model)
    if settings.api_key:
        return settings.api_key
    if prefix in AWS_PREFIXES:
        if has_custom_address(settings) and first_env(AWS_IDENTITY_VARIABLES, environ)[1]:
            raise SettingNotAllowed(AMBIENT_IDENTITY)
        # An empty key keeps the environment's from being read.
        return "" if _has_own_key(settings) else None
    if prefix == "vertex_ai":
        return None
    if settings.base_url or provider is None or "azure_ad_token" in settings.secrets:
        return PLACEHOLDER_KEY
    if prefix == "azure":
        # Without a key, a token of the environment may be used.
        return first_env(("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"), environ)[1] or None
    key = first_env(provider.keys, environ)[1]
    if not key and provider.needs_key:
        raise ModelError(
            f"The model {settings.model!r} has no API key.",
            advice=CHECK_KEY_ADVICE,
        )
    return key or PLACEHOLDER_KEY


def resolve_address(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the URL to call; None for the provider's own.

    Raises ModelError for a self-hosted server without a URL: LiteLLM would send its key to
    OpenAI.
    """
    provider = _find_provider(settings.model)
    if settings.base_url or provider is None or provider.base_url or not provider.addresses:
        return settings.base_url
    if not (named := first_env(provider.addresses, environ)[1]):
        names = " or ".join(provider.addresses)
        sentence = f"The model {settings.model!r} has no URL."
        raise ModelError(sentence, advice=f"Enter its URL, or set {names}.")
    return named if resolve_key(settings, environ) else None


def blank_credentials(settings: ModelSettings) -> dict[str, str]:
    """Return blanks for credentials that LiteLLM would take from the environment."""
    prefix = provider_prefix(settings.model)
    # Some models of Azure AI are called like Azure OpenAI.
    if prefix in ("azure", "azure_ai") and (settings.base_url or settings.api_key):
        return dict.fromkeys(("azure_username", "azure_password"), "")
    has_pair = "aws_secret_access_key" in settings.secrets
    has_token = "aws_session_token" in settings.secrets
    return {"aws_session_token": ""} if has_pair and not has_token else {}


# LiteLLM prefers these to the keys it is given.
AWS_IDENTITY_VARIABLES = ("AWS_ROLE_NAME", "AWS_PROFILE_NAME", "AWS_WEB_IDENTITY_TOKEN")
AMBIENT_IDENTITY = (
    "aws_bedrock_runtime_endpoint can't be used while the environment sets an AWS role or "
    "profile, because its credentials would be sent to that endpoint."
)
PLACEHOLDER_KEY = "not-needed"
CHECK_KEY_ADVICE = "Check this model's API key."
REGION_SETS_ADDRESS = "Leave this empty. The region determines the URL."
INVALID_ADDRESS = "Enter a full URL, e.g. https://host/v1."
ADDRESS_HAS_PASSWORD = "The URL contains a password. Move it to the key field."
METADATA_ADDRESS = "This is a cloud metadata address. It can't serve models."
INVALID_NAME = "Enter it as provider/model, without spaces, URLs or references."
UNKNOWN_PROVIDER = "Unknown provider: {name}."
MISSING_PROVIDER = "{name} doesn't include a provider. Enter it as provider/model."
UNKNOWN_OPTION = "{name} isn't allowed for {provider}. Allowed: {names}."
OPTIONS_NOT_ALLOWED = "{name} isn't allowed for {provider}. No settings are allowed here."
INVALID_VALUE = "Invalid value for {name}: expected {words}."
REFERENCE_NOT_ALLOWED = (
    "{name} refers to a variable, a file or a service. Enter the value itself."
)
NEEDS_OWN_KEY = (
    "aws_bedrock_runtime_endpoint needs its own key. Enter an API key, or aws_access_key_id "
    "and aws_secret_access_key."
)


def _find_provider(model: str) -> ModelProvider | None:
    return find_provider(full_name(model))


def _option_problems(settings: ModelSettings, prefix: str) -> Iterator[SettingProblem]:
    fields = {"api_version": "api_version", "aws_region_name": "region"}
    allowed = allowed_options(prefix)
    for name, problem in _problems_by_name(settings.litellm_options, allowed, prefix):
        own = name in fields and name not in settings.options
        if own and name not in allowed:
            continue  # already reported for the field
        yield SettingProblem(fields[name] if own else "options", problem)


def _field_problems(
    options: Mapping[str, Any], allowed: Mapping[str, ValueRule], field: str, prefix: str
) -> Iterator[SettingProblem]:
    for _name, sentence in _problems_by_name(options, allowed, prefix):
        yield SettingProblem(field, sentence)


def _problems_by_name(
    options: Mapping[str, Any], allowed: Mapping[str, ValueRule], prefix: str
) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if value is None:
            continue
        if (shape := allowed.get(name)) is None:
            form = UNKNOWN_OPTION if allowed else OPTIONS_NOT_ALLOWED
            names = ", ".join(sorted(allowed))
            short_name = _truncate(name)
            yield (
                name,
                form.format(name=short_name, provider=provider_label(prefix), names=names),
            )
        elif _is_reference(value, shape):
            yield name, REFERENCE_NOT_ALLOWED.format(name=name)
        elif not shape.fits(value):
            yield name, INVALID_VALUE.format(name=name, words=shape.words)


def _truncate(name: Any) -> str:
    text = str(name)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _is_reference(value: Any, shape: ValueRule) -> bool:
    """Whether any part would be looked up; stop sequences and secrets may look like a path."""
    if shape.is_address:
        return False
    if isinstance(value, str):
        is_path = FILE_PATH.match(value) and shape is not STOP_SEQUENCES and not shape.is_secret
        return bool(REFERENCE_PATTERN.match(value) or is_path)
    if isinstance(value, Mapping):
        return any(_is_reference(each, shape) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(_is_reference(item, shape) for item in value)


def _has_own_key(settings: ModelSettings) -> bool:
    pair = {"aws_access_key_id", "aws_secret_access_key"}
    return bool(settings.api_key) or pair <= settings.secrets.keys()


def _model_location(model: str) -> str:
    """Return the part of a name that decides the destination, e.g. a region or account."""
    prefix, _, rest = full_name(model).partition("/")
    if prefix == "baseten" and BASETEN_DEPLOYMENT.fullmatch(rest.replace("baseten/", "")):
        return f"{prefix}/{rest}"  # has its own host
    if prefix not in AWS_PREFIXES | {"vertex_ai", "fireworks_ai"}:
        return prefix
    if "arn:" in rest:
        before, _, arn = rest.partition("arn:")
        return f"{prefix}/{before}arn:{':'.join(arn.split(':')[:4])}"
    return f"{prefix}/{rest.rpartition('/')[0]}"


def _is_metadata_host(host: str) -> bool:
    if host.rstrip(".").lower() in {"metadata.google.internal", "metadata"}:
        return True
    try:
        address = ipaddress.ip_address(_normalize_ipv4(host))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_link_local or mapped.is_multicast or str(address) == "fd00:ec2::254"


def _normalize_ipv4(host: str) -> str:
    """Return an IPv4 address in its usual form; it may be written as one number."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return host
