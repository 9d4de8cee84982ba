"""Which key and which URL a request uses, and where it goes."""

import re
from collections.abc import Mapping
from typing import Any

from agents.engine.errors import ModelError
from agents.engine.sentences import Sentence as _
from agents.llm.providers import first_env

from .model_names import full_name, provider_of, provider_prefix
from .options import AWS_PREFIXES
from .settings import ModelSettings, SettingNotAllowed

BASETEN_DEPLOYMENT = re.compile(r"[A-Za-z0-9]{8}")
# Options that change the host or the account of a request.
DESTINATION_OPTIONS = frozenset(
    {
        "api_version",
        "aws_bedrock_runtime_endpoint",
        "aws_external_id",
        "aws_region_name",
        "aws_role_name",
        "vertex_location",
        "vertex_project",
    }
)
# LiteLLM prefers these to the keys it is given.
AWS_IDENTITY_VARIABLES = ("AWS_ROLE_NAME", "AWS_PROFILE_NAME", "AWS_WEB_IDENTITY_TOKEN")
AMBIENT_IDENTITY = _(
    "aws_bedrock_runtime_endpoint can't be used while the environment "
    "sets an AWS role or profile, because its credentials would be "
    "sent to that endpoint."
)
PLACEHOLDER_KEY = "not-needed"
CHECK_KEY_ADVICE = _("Check this model's API key.")


def destination(settings: ModelSettings, provider: str = "") -> tuple[Any, ...]:
    """Return where a request goes and for whom: a secret for one isn't valid for another."""
    merged = settings.litellm_options
    routes = tuple(sorted((n, repr(v)) for n, v in merged.items() if n in DESTINATION_OPTIONS))
    address = (settings.base_url or "").rstrip("/")
    return provider, _model_location(settings.model), address, routes


def has_custom_address(settings: ModelSettings) -> bool:
    """Whether the address is neither the provider's nor from the environment."""
    return bool(settings.base_url) or "aws_bedrock_runtime_endpoint" in settings.litellm_options


def resolve_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the key to send.

    LiteLLM always gets one, so that it doesn't look for one itself. A key of the environment is
    only sent to its own provider, at the provider's address or one from the environment. None
    leaves the choice to LiteLLM, for providers that authenticate a machine by other means.
    """
    if settings.api_key:
        return settings.api_key
    prefix = provider_prefix(settings.model)
    provider = provider_of(settings.model)
    if prefix in AWS_PREFIXES:
        if has_custom_address(settings) and first_env(AWS_IDENTITY_VARIABLES, environ)[1]:
            raise SettingNotAllowed(AMBIENT_IDENTITY)
        # An empty key keeps the environment's from being read.
        return "" if has_own_key(settings) else None
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
            _("The model %(model)s has no API key.", model=repr(settings.model)),
            advice=CHECK_KEY_ADVICE,
        )
    return key or PLACEHOLDER_KEY


def resolve_address(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the URL to call; None for the provider's own.

    Raises ModelError for a self-hosted server without a URL: LiteLLM would send its key to
    OpenAI.
    """
    provider = provider_of(settings.model)
    if settings.base_url or provider is None or provider.base_url or not provider.addresses:
        return settings.base_url
    if not (address := first_env(provider.addresses, environ)[1]):
        names = " or ".join(provider.addresses)
        sentence = _("The model %(model)s has no URL.", model=repr(settings.model))
        raise ModelError(sentence, advice=_("Enter its URL, or set %(names)s.", names=names))
    return address if resolve_key(settings, environ) else None


def blank_credentials(settings: ModelSettings) -> dict[str, str]:
    """Return blanks for credentials that LiteLLM would take from the environment."""
    prefix = provider_prefix(settings.model)
    # Some models of Azure AI are called like Azure OpenAI.
    if prefix in ("azure", "azure_ai") and (settings.base_url or settings.api_key):
        return dict.fromkeys(("azure_username", "azure_password"), "")
    has_pair = "aws_secret_access_key" in settings.secrets
    has_token = "aws_session_token" in settings.secrets
    return {"aws_session_token": ""} if has_pair and not has_token else {}


def has_own_key(settings: ModelSettings) -> bool:
    pair = {"aws_access_key_id", "aws_secret_access_key"}
    return bool(settings.api_key) or pair <= settings.secrets.keys()


def _model_location(model: str) -> str:
    """Return the part of a name that decides the destination, e.g. a region or account."""
    prefix, _, name = full_name(model).partition("/")
    if prefix == "baseten" and BASETEN_DEPLOYMENT.fullmatch(name.replace("baseten/", "")):
        return f"{prefix}/{name}"  # has its own host
    if prefix not in AWS_PREFIXES | {"vertex_ai", "fireworks_ai"}:
        return prefix
    if "arn:" in name:
        path, _, arn = name.partition("arn:")
        return f"{prefix}/{path}arn:{':'.join(arn.split(':')[:4])}"
    return f"{prefix}/{name.rpartition('/')[0]}"
