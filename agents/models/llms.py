"""The models that agents may think with, beside the one that this installation found."""

from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from .rights import Restricted
from .secret import EncryptedJSONField, EncryptedTextField

DEMO = "demo"
LABEL_VALIDATOR = RegexValidator(
    r"\A\w[\w.:+-]*\Z", _("Letters, digits and . : + - _ without blanks; no / in it.")
)
LABEL_RESERVED = _("This is the name of the demo model. Take another one.")
INVALID_ADDRESS = _("Write a whole address such as https://host/v1.")
ADDRESS_HAS_PASSWORD = _("It holds a password: put it into the key.")
PRICES_INCOMPLETE = _("Set both prices, or none. 0 is a price, too.")


class LanguageModel(Restricted):
    """A model, how it is reached, and what it may be used for."""

    class Provider(models.TextChoices):
        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic", "Anthropic"
        GEMINI = "gemini", "Gemini"
        AZURE = "azure", "Azure OpenAI"
        BEDROCK = "bedrock", "Amazon Bedrock"
        OLLAMA = "ollama", "Ollama"
        COMPATIBLE = "compatible", _("an OpenAI-compatible address")
        OTHER = "other", _("another one that LiteLLM knows")

    label = models.CharField(
        _("label"),
        max_length=64,
        unique=True,
        validators=[LABEL_VALIDATOR],
        help_text=_("What people see, and agents name it by. It stays as it is."),
    )
    provider = models.CharField(
        _("provider"), max_length=20, choices=Provider, default=Provider.OPENAI
    )
    model = models.CharField(_("model"), max_length=200)
    base_url = models.CharField(_("address"), max_length=500, blank=True)
    api_key = EncryptedTextField(_("key"), blank=True, default="")
    api_version = models.CharField(_("API version"), max_length=40, blank=True)
    region = models.CharField(_("region"), max_length=40, blank=True)
    secrets = EncryptedJSONField(_("further secrets"), default=dict, blank=True)
    options = models.JSONField(_("further settings"), default=dict, blank=True)
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    input_price = models.FloatField(
        _("dollars per million tokens read"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Empty: as LiteLLM's table says, where it does. 0 is a price, too."),
    )
    output_price = models.FloatField(
        _("dollars per million tokens written"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )
    context_window = models.PositiveIntegerField(
        _("context window"),
        null=True,
        blank=True,
        validators=[MinValueValidator(256)],
        help_text=_("Tokens that fit into a request. Empty: as LiteLLM's table says."),
    )
    fallbacks = models.TextField(
        _("models to fall back to"),
        blank=True,
        help_text=_(
            "Labels or LiteLLM names, one a line, asked in this order where it cannot be "
            "used. Those of the agent come first."
        ),
    )
    concurrency = models.PositiveIntegerField(
        _("most at once"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Empty means no limit. These limits count in each server process by itself."
        ),
    )
    requests_per_minute = models.PositiveIntegerField(
        _("most requests a minute"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    tokens_per_minute = models.PositiveIntegerField(
        _("most tokens a minute"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    enabled = models.BooleanField(_("enabled"), default=True)

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        ordering = ["label"]

    def __str__(self) -> str:
        return self.label

    def clean(self) -> None:
        wrong = {}
        if self.label == DEMO:
            wrong["label"] = LABEL_RESERVED
        if sentence := _address_problem(self.base_url):
            wrong["base_url"] = sentence
        if (self.input_price is None) != (self.output_price is None):
            wrong["output_price" if self.output_price is None else "input_price"] = (
                PRICES_INCOMPLETE
            )
        if wrong:
            raise ValidationError(wrong)


def _address_problem(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_whole = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        return INVALID_ADDRESS
    if not address:
        return ""
    if not is_whole or any(c.isspace() or not c.isprintable() for c in address):
        return INVALID_ADDRESS
    return ADDRESS_HAS_PASSWORD if "@" in parts.netloc else ""
