"""The providers that can be connected, as cards: each with only the fields it needs.

A card is more than a provider of a row: many providers are LiteLLM's, and several servers have
OpenAI's API.
"""

import os
from dataclasses import dataclass

from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.llm.providers import PROVIDERS, PROVIDERS_BY_PREFIX, first_env
from agents.models import LanguageModel, ModelConnection
from agents.models.types import LazyText

Provider = ModelConnection.Provider
TONES = ("violet", "blue", "teal", "green", "amber", "slate")
OWN_URL = _("Leave empty to use the provider's own URL. Enter one only for a gateway or proxy.")
KEY_IN_ENVIRONMENT = _(
    "Encrypted and never displayed again. Leave empty to use the provider's key from "
    "the environment (only with the provider's own URL)."
)
NO_KEY_NEEDED = _("Encrypted and never displayed again. Leave empty if the server needs none.")


def _translated_server_help(url: str) -> str:
    return gettext("The server's URL, e.g. %(url)s.") % {"url": url}


own_server_help = lazy(_translated_server_help, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCard:
    """A provider: `prefix` begins its models' names, `fields` are those it needs."""

    key: str
    label: LazyText
    provider: str
    prefix: str
    about: LazyText = ""
    fields: tuple[str, ...] = ("api_key",)
    model: str = ""  # an example
    url: str = ""  # an example
    url_help: LazyText = OWN_URL
    needs_url: bool = False
    needs_key: bool = True
    is_popular: bool = False

    @property
    def monogram(self) -> str:
        """Two letters for the tile: no provider's logo is ours to use."""
        names = str(self.label).replace("-", " ").split()
        short = "".join(name[0] for name in names[:2]) if len(names) > 1 else names[0][:2]
        return short.upper() if len(names) > 1 else short.capitalize()

    @property
    def tone(self) -> str:
        return TONES[sum(map(ord, self.key)) % len(TONES)]

    @property
    def key_help(self) -> LazyText:
        return KEY_IN_ENVIRONMENT if self.needs_key else NO_KEY_NEEDED


def _own_server(prefix: str, label: str, about: LazyText, url: str) -> ProviderCard:
    """Return the card of a server with OpenAI's API that users run themselves."""
    return ProviderCard(
        key=prefix,
        label=label,
        provider=Provider.COMPATIBLE,
        prefix=prefix,
        about=about,
        fields=("base_url", "api_key"),
        model="my-model",
        url=url,
        url_help=own_server_help(url),
        needs_url=True,
        needs_key=False,
        is_popular=prefix != "litellm_proxy",
    )


POPULAR = (
    ProviderCard(
        key="openai",
        label="OpenAI",
        provider=Provider.OPENAI,
        prefix="openai",
        about=_("GPT and o-series models"),
        model="gpt-6.1-sol",
        url="https://api.openai.com/v1",
        is_popular=True,
    ),
    ProviderCard(
        key="anthropic",
        label="Anthropic",
        provider=Provider.ANTHROPIC,
        prefix="anthropic",
        about=_("Claude models"),
        model="claude-sonnet-5",
        url=PROVIDERS_BY_PREFIX["anthropic"].base_url or "",
        is_popular=True,
    ),
    ProviderCard(
        key="gemini",
        label="Google Gemini",
        provider=Provider.GEMINI,
        prefix="gemini",
        about=_("Gemini models, with an AI Studio key"),
        model="gemini-3.8-flash",
        url=PROVIDERS_BY_PREFIX["gemini"].base_url or "",
        is_popular=True,
    ),
    ProviderCard(
        key="azure",
        label="Azure OpenAI",
        provider=Provider.AZURE,
        prefix="azure",
        about=_("Your own deployments"),
        fields=("base_url", "api_key", "api_version"),
        model="my-deployment",
        url="https://NAME.openai.azure.com",
        url_help=_("The endpoint of your Azure OpenAI resource, without a path."),
        needs_url=True,
        is_popular=True,
    ),
    ProviderCard(
        key="bedrock",
        label="AWS Bedrock",
        provider=Provider.BEDROCK,
        prefix="bedrock",
        about=_("Models in your AWS account"),
        fields=("region", "api_key", "secrets"),
        model="anthropic.claude-sonnet-4-5-20250929-v1:0",
        needs_key=False,
        is_popular=True,
    ),
    ProviderCard(
        key="ollama",
        label="Ollama",
        provider=Provider.OLLAMA,
        prefix="ollama",
        about=_("Open models on your own machine"),
        fields=("base_url",),
        model="llama3.3",
        url="http://localhost:11434",
        url_help=_(
            "Ollama's URL, without a path. With /v1 at the end, its OpenAI-compatible API "
            "is used instead, which ignores settings such as num_ctx."
        ),
        needs_key=False,
        is_popular=True,
    ),
    _own_server("hosted_vllm", "vLLM", _("Your own GPU server"), "http://localhost:8000/v1"),
    _own_server(
        "lm_studio", "LM Studio", _("Open models on a desktop"), "http://localhost:1234/v1"
    ),
    _own_server("llamafile", "llama.cpp", _("llama-server"), "http://localhost:8080/v1"),
    _own_server(
        "litellm_proxy", "LiteLLM Proxy", _("Your own gateway"), "http://localhost:4000"
    ),
    ProviderCard(
        key="compatible",
        label=_("OpenAI-compatible API"),
        provider=Provider.COMPATIBLE,
        prefix="openai",
        about=_("Any other server with OpenAI's API"),
        fields=("base_url", "api_key"),
        model="my-model",
        url="https://host/v1",
        url_help=_("Usually ends in /v1."),
        needs_url=True,
        needs_key=False,
        is_popular=True,
    ),
)


def _all_cards() -> dict[str, ProviderCard]:
    """Return the cards above, then those of all other providers; popular ones first."""
    cards = {card.key: card for card in POPULAR}
    used_prefixes = {card.prefix for card in POPULAR}
    used_prefixes |= {"ollama_chat", "cohere_chat", "sagemaker"}
    for provider in PROVIDERS:
        if provider.prefix in used_prefixes:
            continue
        used_prefixes.add(provider.prefix)
        is_elsewhere = bool(provider.addresses) and not provider.base_url and provider.needs_key
        fields = ("base_url", "api_key") if is_elsewhere else ("api_key",)
        cards[provider.prefix] = ProviderCard(
            key=provider.prefix,
            label=provider.label,
            provider=Provider.OTHER,
            prefix=provider.prefix,
            fields=fields if provider.keys else ("options", "secrets"),
            model=provider.model.partition("/")[2],
            url=provider.base_url or "https://host/v1",
            needs_url="base_url" in fields,
            needs_key=provider.needs_key,
            is_popular=bool(provider.model),
        )
    cards["other"] = ProviderCard(
        key="other",
        label=_("Another LiteLLM provider"),
        provider=Provider.OTHER,
        prefix="",
        about=_("By its name, as in provider/model"),
        fields=("api_key", "base_url", "options", "secrets"),
        model="provider/model",
        url="https://host/v1",
    )
    ranked = sorted(cards.values(), key=lambda card: not card.is_popular)
    return {card.key: card for card in ranked}


CARDS = _all_cards()


def card_of(connection: ModelConnection) -> ProviderCard:
    """Return the card of a saved or unsaved connection."""
    cards = (
        card
        for card in CARDS.values()
        if card.provider == connection.provider and card.prefix in ("", connection.prefix)
    )
    return next(cards, None) or default_card(connection.provider)


def default_card(provider: str) -> ProviderCard:
    """Return the card of a provider; for several of them the general one."""
    return CARDS.get(provider, CARDS["other"])


def short_name(row: LanguageModel) -> str:
    """Return the model's name without the prefix that its connection stands for."""
    prefix, slash, name = row.model.partition("/")
    return name if slash and row.connection.prefix == prefix else row.model


def provider_label(connection: ModelConnection) -> str:
    """Return the provider's name, also of LiteLLM's providers."""
    card = card_of(connection)
    if card.key != "other":
        return str(card.label)
    provider = PROVIDERS_BY_PREFIX.get(connection.prefix)
    return provider.label if provider else str(card.label)


def environment_key(connection: ModelConnection) -> str:
    """Return the environment variable whose key a connection uses, or an empty string."""
    provider = PROVIDERS_BY_PREFIX.get(connection.prefix)
    if provider is None or connection.base_url or connection.api_key or connection.secrets:
        return ""
    name, key = first_env(provider.keys, os.environ)
    return name if key else ""
