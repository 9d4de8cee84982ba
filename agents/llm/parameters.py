"""What may be handed to a model's provider: names and values from a list, for each provider.

LiteLLM takes hundreds of parameters. Some name another address, some another key, and some
values are looked up by it: in the environment, in files, at metadata services. So whatever a
form, a file or a row says passes here first, and once more right before each request.
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
from agents.llm.providers import Provider, first_set, provider_of

from . import model_info

LONGEST_NAME = 200
LONGEST_TEXT = 2_000
LONGEST_SECRET = 20_000
MOST_ITEMS = 50
AMAZON = frozenset({"bedrock", "sagemaker", "sagemaker_chat"})
GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"
SERVICE_ACCOUNT = frozenset(
    {
        *("type", "project_id", "private_key_id", "private_key", "client_email", "client_id"),
        *("auth_uri", "token_uri", "auth_provider_x509_cert_url", "client_x509_cert_url"),
        "universe_domain",
    }
)
# LiteLLM names some providers otherwise in its table than in front of a model's name.
TABLE_NAMES = {"bedrock_converse": "bedrock", "vertex_ai-language-models": "vertex_ai"}

NAME = re.compile(r"[A-Za-z0-9_-]+/[\w.:@~+/()=,-]*[\w)]", re.ASCII)
LOOKED_UP = re.compile(r"\s*(?:oidc/|file:)|.*os\.environ/", re.IGNORECASE | re.DOTALL)
FILE = re.compile(r"\s*(?:~?/|\.{1,2}/|[A-Za-z]:[\\/]|\\\\)")
ARN = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d{12}:[\w/.:-]+", re.ASCII)
ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)
REGION = re.compile(r"[a-z]{2,5}(?:-[a-z]+)+-\d{1,2}")
LOCATION = re.compile(r"[a-z]+-[a-z]+\d{1,2}|global|us|eu")
PROJECT = re.compile(r"[a-z][a-z0-9.:-]{2,62}[a-z0-9]")
DEPLOYMENT = re.compile(r"[A-Za-z0-9]{8}")
API_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-preview)?|v1|latest|preview")
VISIBLE = re.compile(r"[!-~]+")
WORD = re.compile(r"[A-Za-z0-9_][\w .:+-]{0,99}", re.ASCII)
SLUG = re.compile(r"[A-Za-z0-9_~][\w./:~+@-]{0,199}", re.ASCII)


class NotAllowed(ModelError):
    """This model has a setting that isn't allowed."""

    advice = "Tell your administrator, or choose another agent."


class UnknownProvider(NotAllowed):
    """This provider is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a model is reached, and what each request to it asks for besides."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str = ""
    region: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def merged(self) -> dict[str, Any]:
        """The options with what has a field of its own, under LiteLLM's names."""
        own = {"api_version": self.api_version, "aws_region_name": self.region}
        return {**{name: value for name, value in own.items() if value}, **self.options}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value has to look like, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]
    is_address: bool = False
    is_secret: bool = False


# Shapes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def _like(words: str, pattern: re.Pattern[str]) -> Shape:
    return Shape(words, lambda value: isinstance(value, str) and bool(pattern.fullmatch(value)))


def _list_of(shape: Shape) -> Shape:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, list) and len(value) <= MOST_ITEMS and all(map(shape.fits, value))
        )

    return Shape(f"a list, each item {shape.words}", fits)


def _object_of(**shapes: Shape) -> Shape:
    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in shapes and shapes[name].fits(item) for name, item in value.items()
        )

    return Shape(f"an object of {', '.join(sorted(shapes))}", fits)


def _one_of(*shapes: Shape) -> Shape:
    words = " or ".join(shape.words for shape in shapes)
    return Shape(words, lambda value: any(shape.fits(value) for shape in shapes))


def _flat(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_ITEMS
        and all(isinstance(name, str) and WORD.fullmatch(name) for name in value)
        and all(
            isinstance(item, bool) or _is_number(item) or _is_word(item)
            for item in value.values()
        )
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(WORD.fullmatch(value))


def _is_credential(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= LONGEST_SECRET
        and bool(VISIBLE.fullmatch(value))
        and not LOOKED_UP.match(value)
    )


def _is_service_account(value: Any) -> bool:
    """Google's key of an account; other kinds read files, ask other hosts or run programs."""
    if not isinstance(value, str) or len(value) > LONGEST_SECRET:
        return False
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(told, dict)
        and told.keys() <= SERVICE_ACCOUNT
        and all(isinstance(item, str) for item in told.values())
        and told.get("type") == "service_account"
        and told.get("token_uri", GOOGLE_TOKENS) == GOOGLE_TOKENS
        and told.get("universe_domain", "googleapis.com") == "googleapis.com"
    )


NUMBER = Shape("a number", _is_number)
WHOLE = Shape("a whole number", _is_whole)
ABOVE_0 = Shape("a whole number above 0", lambda value: _is_whole(value) and value > 0)
SWITCH = Shape("true or false", lambda value: isinstance(value, bool))
TEXT = Shape(f"text of at most {LONGEST_TEXT} characters", _is_text)
A_WORD = Shape("a word", _is_word)
WORDS = _list_of(A_WORD)
SLUGS = _list_of(_like("a name", SLUG))
FLAT = Shape("an object with text, number, true or false values", _flat)
NUMBERS = Shape(
    "an object of numbers",
    lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
)
STOPS = Shape(
    "text or a list of texts",
    lambda value: (
        _is_text(value)
        or (isinstance(value, list) and len(value) <= MOST_ITEMS and all(map(_is_text, value)))
    ),
)
DURATION = _one_of(NUMBER, _like("such as 30s or 5m", re.compile(r"-?\d{1,6}[smh]?")))
CREDENTIAL = Shape("the secret itself, without spaces", _is_credential, is_secret=True)
ADDRESS = Shape(
    "a full URL, e.g. https://host/v1",
    lambda value: isinstance(value, str) and not wrong_address(value),
    is_address=True,
)
EFFORT = _one_of(A_WORD, _object_of(effort=A_WORD, summary=A_WORD))
THINKING = _object_of(type=A_WORD, budget_tokens=WHOLE, display=A_WORD)

# What a model can be asked for, whoever offers it.
SAMPLING = {
    **dict.fromkeys(("temperature", "top_p", "min_p"), NUMBER),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), NUMBER),
    **dict.fromkeys(("top_k", "seed"), WHOLE),
    "max_tokens": ABOVE_0,
    "stop": STOPS,
    **dict.fromkeys(("service_tier", "verbosity"), A_WORD),
    "reasoning_effort": EFFORT,
    "thinking": THINKING,
    "parallel_tool_calls": SWITCH,
}
# What the engine itself says in a request, from schemas that have been checked elsewhere.
OF_THE_ENGINE = frozenset({"tool_choice", "response_format"})

EVERYWHERE = {
    **SAMPLING,
    "max_completion_tokens": ABOVE_0,
    "logit_bias": NUMBERS,
    "prompt_cache_retention": A_WORD,
    **dict.fromkeys(("user", "safety_identifier", "prompt_cache_key"), A_WORD),
    "store": SWITCH,
}
OWN_SERVER = {
    **dict.fromkeys(("repetition_penalty", "repeat_penalty", "length_penalty"), NUMBER),
    **dict.fromkeys(("top_a", "typical_p"), NUMBER),
    **dict.fromkeys(("min_tokens", "num_ctx", "num_predict", "thinking_budget"), WHOLE),
    **dict.fromkeys(("skip_special_tokens", "include_reasoning", "enable_thinking"), SWITCH),
    "chat_template_kwargs": FLAT,
    "think": _one_of(SWITCH, A_WORD),
    "keep_alive": DURATION,
}
OF_AMAZON = {
    "aws_region_name": _like("a region, e.g. eu-central-1", REGION),
    "aws_role_name": _like("a role ARN", ROLE),
    "aws_session_name": _like("a name", re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)),
    "aws_external_id": _like("an ID", re.compile(r"[\w+=,.@-]{2,200}", re.ASCII)),
    "guardrailConfig": _object_of(
        guardrailIdentifier=A_WORD, guardrailVersion=A_WORD, trace=A_WORD
    ),
}
OF_GOOGLE = {
    "safety_settings": _list_of(_object_of(category=A_WORD, threshold=A_WORD)),
}
VERSIONED = {"api_version": _like("a version, e.g. 2024-10-21", API_VERSION)}
THINKS = {"enable_thinking": SWITCH, "thinking_budget": WHOLE}
ROUTED = _object_of(
    **dict.fromkeys(("order", "only", "ignore", "quantizations"), SLUGS),
    **dict.fromkeys(("allow_fallbacks", "require_parameters", "zdr"), SWITCH),
    **dict.fromkeys(("data_collection", "sort"), A_WORD),
)

OPTIONS: Mapping[str, Mapping[str, Shape]] = {
    **dict.fromkeys(("openai", "hosted_vllm", "lm_studio", "llamafile"), OWN_SERVER),
    **dict.fromkeys(("ollama", "ollama_chat", "litellm_proxy", "openrouter"), OWN_SERVER),
    **dict.fromkeys(("dashscope", "deepseek", "zai", "moonshot", "novita"), THINKS),
    "openrouter": OWN_SERVER
    | {
        "provider": ROUTED,
        **dict.fromkeys(("models", "transforms"), SLUGS),
        "route": A_WORD,
        "reasoning": _object_of(
            effort=A_WORD, max_tokens=WHOLE, exclude=SWITCH, enabled=SWITCH
        ),
    },
    "groq": {"reasoning_format": A_WORD, "include_reasoning": SWITCH},
    "mistral": {"safe_prompt": SWITCH},
    **dict.fromkeys(("cohere", "cohere_chat"), {"safety_mode": A_WORD}),
    "perplexity": {
        "search_domain_filter": WORDS,
        **dict.fromkeys(("search_recency_filter", "search_mode"), A_WORD),
    },
    **dict.fromkeys(("azure", "azure_ai"), VERSIONED),
    **dict.fromkeys(AMAZON, OF_AMAZON),
    "bedrock": OF_AMAZON | {"aws_bedrock_runtime_endpoint": ADDRESS},
    "gemini": OF_GOOGLE,
    "vertex_ai": OF_GOOGLE
    | {
        "vertex_project": _like("a project ID", PROJECT),
        "vertex_location": _like("a location, e.g. europe-west1", LOCATION),
    },
}
SECRETS: Mapping[str, Mapping[str, Shape]] = {
    **dict.fromkeys(
        AMAZON,
        dict.fromkeys(
            ("aws_access_key_id", "aws_secret_access_key", "aws_session_token"), CREDENTIAL
        ),
    ),
    "azure": {"azure_ad_token": CREDENTIAL},
    "vertex_ai": {
        "vertex_credentials": Shape(
            "the JSON key of a service account", _is_service_account, is_secret=True
        )
    },
}
# Whatever of these changes, a request goes to another host, or for another account.
ROUTES = frozenset(
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
class Problem:
    """What is wrong, and in which field of `Settings`."""

    field: str
    sentence: str
    is_unknown_provider: bool = False


def check(settings: Settings, request: Mapping[str, Any] | None = None) -> None:
    """Raises NotAllowed where a request of these parameters must not be made."""
    for problem in problems(settings):
        kind = UnknownProvider if problem.is_unknown_provider else NotAllowed
        raise kind(problem.sentence)
    prefix = prefix_of(settings.model)
    asked = {n: value for n, value in (request or {}).items() if n not in OF_THE_ENGINE}
    for _, sentence in _named_problems(asked, allowed_options(prefix), prefix):
        raise NotAllowed(sentence)


def problems(settings: Settings) -> Iterator[Problem]:
    """All that is wrong, in sentences that show no value."""
    if sentence := wrong_name(settings.model):
        is_unknown = _provider(settings.model) is None
        yield Problem("model", sentence, is_unknown)
        return
    prefix = prefix_of(settings.model)
    if settings.base_url and (sentence := wrong_address(settings.base_url)):
        yield Problem("base_url", sentence)
    if settings.base_url and prefix in AMAZON | {"vertex_ai"}:
        yield Problem("base_url", BY_REGION)
    if settings.api_key and not _is_credential(settings.api_key):
        yield Problem("api_key", REFERENCE.format(name="The key"))
    if settings.api_version and prefix not in ("azure", "azure_ai"):
        yield Problem("api_version", f"{label_of(prefix)} doesn't use an API version.")
    if settings.region and prefix not in AMAZON:
        yield Problem("region", f"{label_of(prefix)} doesn't use a region.")
    yield from _wrong_options(settings, prefix)
    yield from _wrong(settings.secrets, SECRETS.get(prefix, {}), "secrets", prefix)
    yield from _wrong(settings.parameters, SAMPLING, "parameters", prefix)
    if "aws_bedrock_runtime_endpoint" in settings.merged and not _has_own_key(settings):
        yield Problem("options", NEEDS_OWN_KEY)


@lru_cache(maxsize=256)
def wrong_name(model: str) -> str:
    """Why a model can't be called this; empty where it can."""
    if (provider := _provider(model)) is None:
        prefix = _shown(model.partition("/")[0]) if "/" in model else ""
        words = UNKNOWN_PROVIDER if prefix else NO_PROVIDER
        return words.format(name=prefix or _shown(model))
    name = full_name(model)
    rest = name.partition("/")[2]
    parts = rest.split("/")
    is_plain = bool(NAME.fullmatch(name)) and len(name) <= LONGEST_NAME
    # A server that is told the name in the body may know a model by the path of its file.
    is_path = rest.startswith("/") and provider.speaks_openai
    has_gap = "" in (parts[1:] if is_path else parts)
    is_elsewhere = LOOKED_UP.match(rest) or (FILE.match(rest) and not is_path)
    if not is_plain or has_gap or is_elsewhere or {".", ".."} & {*parts}:
        return NOT_A_NAME
    if "arn:" in rest and not ARN.fullmatch(rest[rest.index("arn:") :]):
        return NOT_A_NAME
    return ""


def wrong_address(address: str) -> str:
    """Why nothing can be asked at this address; empty where it can."""
    return _address_problem(address)


@lru_cache(maxsize=256)
def _address_problem(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_whole = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        return NO_ADDRESS
    if not is_whole or any(c.isspace() or not c.isprintable() for c in address):
        return NO_ADDRESS
    if "@" in parts.netloc:
        return WITH_PASSWORD
    if parts.fragment or "\\" in address:
        return NO_ADDRESS
    return METADATA if _is_metadata(parts.hostname or "") else ""


def destination(settings: Settings, provider: str = "") -> tuple[Any, ...]:
    """Where a request goes and for whom: a secret entered for one is not for another."""
    merged = settings.merged
    routes = tuple(sorted((n, repr(v)) for n, v in merged.items() if n in ROUTES))
    address = (settings.base_url or "").rstrip("/")
    return provider, _route(settings.model), address, routes


def prefix_of(model: str) -> str:
    return full_name(model).partition("/")[0]


def label_of(prefix: str) -> str:
    provider = provider_of(f"{prefix}/")
    return provider.label if provider else prefix


def full_name(model: str) -> str:
    """The name with its provider before it, where LiteLLM's table knows whose it is."""
    if "/" in model:
        return model
    listed = model_info.provider(model)
    return f"{TABLE_NAMES.get(listed, listed)}/{model}" if listed else model


def has_typed_address(settings: Settings) -> bool:
    """Whether somebody other than the provider or the environment says where it is."""
    return bool(settings.base_url) or "aws_bedrock_runtime_endpoint" in settings.merged


def allowed_options(prefix: str) -> dict[str, Shape]:
    return {**EVERYWHERE, **OPTIONS.get(prefix, {})}


def key_for(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The key to send. LiteLLM is always given one: it must not look for one by itself.

    A key of the environment goes only to the provider whose it is, at the provider's own
    address or one that the environment names as well. None leaves the choice to LiteLLM, for
    providers that know a machine by other means than a key.
    """
    prefix, provider = prefix_of(settings.model), _provider(settings.model)
    if settings.api_key:
        return settings.api_key
    if prefix in AMAZON:
        if has_typed_address(settings) and first_set(OTHER_IDENTITIES, environ)[1]:
            raise NotAllowed(IDENTITY_OF_THE_ENVIRONMENT)
        # An empty key is none, and keeps the environment's from being read.
        return "" if _has_own_key(settings) else None
    if prefix == "vertex_ai":
        return None
    if settings.base_url or provider is None or "azure_ad_token" in settings.secrets:
        return NO_KEY
    if prefix == "azure":
        # Where there is no key, a token of the environment may stand in for one.
        return first_set(("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"), environ)[1] or None
    key = first_set(provider.keys, environ)[1]
    if not key and provider.needs_key:
        raise ModelError(
            f"The provider of {settings.model!r} did not accept the key: Missing API key.",
            advice=CHECK_KEY,
        )
    return key or NO_KEY


def address_for(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The address to ask; None for the provider's own.

    Raises ModelError for a server of one's own that nobody named: LiteLLM would send its key
    to OpenAI.
    """
    provider = _provider(settings.model)
    if settings.base_url or provider is None or provider.base_url or not provider.addresses:
        return settings.base_url
    if not (named := first_set(provider.addresses, environ)[1]):
        names = " or ".join(provider.addresses)
        sentence = f"The model {settings.model} has no address."
        raise ModelError(sentence, advice=f"Enter its address, or set {names}.")
    return named if key_for(settings, environ) else None


def without_others(settings: Settings) -> dict[str, str]:
    """What LiteLLM would take from the environment to go with, or instead of, the own key."""
    prefix = prefix_of(settings.model)
    # Some names of Azure AI are asked the way of Azure OpenAI.
    if prefix in ("azure", "azure_ai") and (settings.base_url or settings.api_key):
        return dict.fromkeys(("azure_username", "azure_password"), "")
    has_pair = "aws_secret_access_key" in settings.secrets
    has_token = "aws_session_token" in settings.secrets
    return {"aws_session_token": ""} if has_pair and not has_token else {}


# LiteLLM puts these before the keys that it is given.
OTHER_IDENTITIES = ("AWS_ROLE_NAME", "AWS_PROFILE_NAME", "AWS_WEB_IDENTITY_TOKEN")
IDENTITY_OF_THE_ENVIRONMENT = (
    "aws_bedrock_runtime_endpoint can't be used while the environment sets an AWS role or "
    "profile, because its credentials would be sent to that endpoint."
)
NO_KEY = "not-needed"
CHECK_KEY = "Check the API key of this model."
BY_REGION = "Leave this empty. The region determines the address."
NO_ADDRESS = "Write a whole address such as https://host/v1."
WITH_PASSWORD = "It holds a password: put it into the key."
METADATA = "This is a cloud metadata address. It can't serve models."
NOT_A_NAME = "Enter it as provider/model, without spaces, URLs or references."
UNKNOWN_PROVIDER = "There is no provider called {name}."
NO_PROVIDER = "{name} doesn't include a provider. Enter it as provider/model."
UNKNOWN = "{name} isn't allowed for {provider}. Allowed: {names}."
NOTHING_ALLOWED = "{name} isn't allowed for {provider}. No settings are allowed here."
MISSHAPEN = "{name} must be {words}."
REFERENCE = "{name} refers to a variable, a file or a service. Enter the value itself."
NEEDS_OWN_KEY = (
    "aws_bedrock_runtime_endpoint needs its own key. Enter an API key, or aws_access_key_id "
    "and aws_secret_access_key."
)


def _provider(model: str) -> Provider | None:
    return provider_of(full_name(model))


def _wrong_options(settings: Settings, prefix: str) -> Iterator[Problem]:
    fields = {"api_version": "api_version", "aws_region_name": "region"}
    allowed = allowed_options(prefix)
    for name, problem in _named_problems(settings.merged, allowed, prefix):
        own = name in fields and name not in settings.options
        if own and name not in allowed:
            continue  # said of the field already
        yield Problem(fields[name] if own else "options", problem)


def _wrong(
    given: Mapping[str, Any], allowed: Mapping[str, Shape], field: str, prefix: str
) -> Iterator[Problem]:
    for _name, sentence in _named_problems(given, allowed, prefix):
        yield Problem(field, sentence)


def _named_problems(
    given: Mapping[str, Any], allowed: Mapping[str, Shape], prefix: str
) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if value is None:
            continue
        if (shape := allowed.get(name)) is None:
            form = UNKNOWN if allowed else NOTHING_ALLOWED
            names = ", ".join(sorted(allowed))
            shown = _shown(name)
            yield name, form.format(name=shown, provider=label_of(prefix), names=names)
        elif _refers(value, shape):
            yield name, REFERENCE.format(name=name)
        elif not shape.fits(value):
            yield name, MISSHAPEN.format(name=name, words=shape.words)


def _shown(name: Any) -> str:
    text = str(name)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _refers(value: Any, shape: Shape) -> bool:
    """Whether anything in it would be looked up; a stop or a secret may look like a path."""
    if shape.is_address:
        return False
    if isinstance(value, str):
        is_path = FILE.match(value) and shape is not STOPS and not shape.is_secret
        return bool(LOOKED_UP.match(value) or is_path)
    if isinstance(value, Mapping):
        return any(_refers(each, shape) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(_refers(item, shape) for item in value)


def _has_own_key(settings: Settings) -> bool:
    pair = {"aws_access_key_id", "aws_secret_access_key"}
    return bool(settings.api_key) or pair <= settings.secrets.keys()


def _route(model: str) -> str:
    """The part of a name that says where to ask: a region, a project, an account or a host."""
    prefix, _, rest = full_name(model).partition("/")
    if prefix == "baseten" and DEPLOYMENT.fullmatch(rest.replace("baseten/", "")):
        return f"{prefix}/{rest}"  # which has a host of its own
    if prefix not in AMAZON | {"vertex_ai", "fireworks_ai"}:
        return prefix
    if "arn:" in rest:
        before, _, arn = rest.partition("arn:")
        return f"{prefix}/{before}arn:{':'.join(arn.split(':')[:4])}"
    return f"{prefix}/{rest.rpartition('/')[0]}"


def _is_metadata(host: str) -> bool:
    if host.rstrip(".").lower() in {"metadata.google.internal", "metadata"}:
        return True
    try:
        address = ipaddress.ip_address(_dotted(host))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_link_local or mapped.is_multicast or str(address) == "fd00:ec2::254"


def _dotted(host: str) -> str:
    """The usual form of an IPv4 address, which may also be written as one number."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return host
