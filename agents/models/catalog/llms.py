"""Models that agents can use, besides the installation's default, and how they are reached."""

from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models, transaction
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from ..secret import EncryptedJSONField, EncryptedTextField
from ..sentence_fields import SentenceJSONField
from ..types import LazyText
from .rights import Restricted

DEMO = "demo"
LABEL_VALIDATOR = RegexValidator(
    r"\A\w[\w.:+-]*\Z", _("Use only letters, digits and . : + - _ (no spaces or slashes).")
)
LABEL_RESERVED = _("This name is reserved for the demo model. Choose another name.")
INVALID_ADDRESS = _("Enter a full URL, e.g. https://host/v1.")
ADDRESS_HAS_PASSWORD = _("The URL contains a password. Move it to the key field.")
PRICES_INCOMPLETE = _("Enter both prices or neither. Use 0 if it's free.")


class ModelConnection(models.Model):
    """A provider's account or a server: where models are, and with which key."""

    class Provider(TextChoices):
        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic", "Anthropic"
        GEMINI = "gemini", "Gemini"
        AZURE = "azure", "Azure OpenAI"
        BEDROCK = "bedrock", "Amazon Bedrock"
        OLLAMA = "ollama", "Ollama"
        COMPATIBLE = "compatible", _("OpenAI-compatible API")
        OTHER = "other", _("Other (LiteLLM)")

    name = models.CharField(_("name"), max_length=100, unique=True)
    provider = models.CharField(
        _("provider"), max_length=20, choices=Provider, default=Provider.OPENAI
    )
    prefix = models.CharField(
        _("provider prefix"),
        max_length=40,
        blank=True,
        help_text=_("What LiteLLM puts before a model's name, e.g. mistral in mistral/small."),
    )
    base_url = models.CharField(_("URL"), max_length=500, blank=True)
    api_key = EncryptedTextField(_("API key"), blank=True, default="")
    api_version = models.CharField(_("API version"), max_length=40, blank=True)
    region = models.CharField(_("region"), max_length=40, blank=True)
    secrets = EncryptedJSONField(_("additional secrets"), default=dict, blank=True)
    options = models.JSONField(_("additional settings"), default=dict, blank=True)
    listing = SentenceJSONField(
        _("models found"),
        default=dict,
        blank=True,
        editable=False,
        db_default=models.Value({}, models.JSONField()),
        help_text=_("What the server listed, when, and why it didn't."),
    )

    class Meta:
        verbose_name = _("connection")
        verbose_name_plural = _("connections")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if sentence := _address_problem(self.base_url):
            raise ValidationError({"base_url": sentence})


class LanguageModel(Restricted):
    """A model of a connection, what it costs, and its limits."""

    class ImageInput(models.TextChoices):
        AUTO = "auto", _("Automatic")
        YES = "yes", _("Yes")
        NO = "no", _("No")

    label = models.CharField(
        _("label"),
        max_length=64,
        unique=True,
        validators=[LABEL_VALIDATOR],
        help_text=_("Name that users see and agents refer to. Can't be changed later."),
    )
    connection = models.ForeignKey(
        ModelConnection,
        verbose_name=_("connection"),
        on_delete=models.CASCADE,
        related_name="models",
    )
    model = models.CharField(_("model"), max_length=200)
    options = models.JSONField(_("additional settings"), default=dict, blank=True)
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    input_price = models.FloatField(
        _("input price (USD per 1M tokens)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Leave empty to use LiteLLM's price, if known. Use 0 if it's free."),
    )
    output_price = models.FloatField(
        _("output price (USD per 1M tokens)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )
    cache_read_price = models.FloatField(
        _("cached input price (USD per 1M tokens)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_(
            "For input that the provider reads from its cache. Leave empty to use the "
            "input price."
        ),
    )
    cache_write_price = models.FloatField(
        _("cache write price (USD per 1M tokens)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_(
            "For input that the provider saves in its cache. Leave empty to use the input "
            "price."
        ),
    )
    context_window = models.PositiveIntegerField(
        _("context window"),
        null=True,
        blank=True,
        validators=[MinValueValidator(256)],
        help_text=_("Max tokens per request. Leave empty to use LiteLLM's value."),
    )
    image_input = models.CharField(
        _("image input"),
        max_length=4,
        choices=ImageInput,
        default=ImageInput.AUTO,
        db_default=ImageInput.AUTO,
        help_text=_(
            "Whether images from tools are sent to the model. Automatic uses LiteLLM's "
            "information."
        ),
    )
    abilities = models.JSONField(
        _("abilities"),
        default=dict,
        blank=True,
        db_default=models.Value({}, models.JSONField()),
        help_text=_("What differs from the price list: tools, audio, schema, reasoning."),
    )
    fallbacks = models.TextField(
        _("fallback models"),
        blank=True,
        help_text=_(
            "Model labels or LiteLLM names, one per line, tried in order. The "
            "agent's own fallback models come first."
        ),
    )
    concurrency = models.PositiveIntegerField(
        _("max concurrent requests"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Leave empty for no limit. The limit applies to all server processes together."
        ),
    )
    requests_per_minute = models.PositiveIntegerField(
        _("max requests per minute"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    tokens_per_minute = models.PositiveIntegerField(
        _("max tokens per minute"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    prompt_caching = models.BooleanField(
        _("prompt caching"),
        default=True,
        db_default=True,
        help_text=_(
            "Lets the provider reuse the unchanged beginning of a prompt at a lower price. "
            "When off, prompts aren't marked for it."
        ),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    is_default = models.BooleanField(
        _("default model"),
        default=False,
        db_default=False,
        help_text=_("Used by agents without a model of their own."),
    )
    last_test = SentenceJSONField(
        _("last test"),
        default=dict,
        blank=True,
        editable=False,
        db_default=models.Value({}, models.JSONField()),
        help_text=_("When it was tested, what worked, and why it failed."),
    )

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        ordering = ["label"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True),
                name="one_default_model",
                violation_error_message=_("Another model is already the default."),
            )
        ]

    def __str__(self) -> str:
        return self.label

    def save(self, *args: Any, **options: Any) -> None:
        """Save it; a new default model replaces the former one."""
        with transaction.atomic():
            if self.is_default:
                former = LanguageModel.objects.filter(is_default=True).exclude(pk=self.pk)
                former.update(is_default=False)
            super().save(*args, **options)

    def clean(self) -> None:
        wrong: dict[str, LazyText] = {}
        if self.label == DEMO:
            wrong["label"] = LABEL_RESERVED
        if (self.input_price is None) != (self.output_price is None):
            wrong["output_price" if self.output_price is None else "input_price"] = (
                PRICES_INCOMPLETE
            )
        if wrong:
            raise ValidationError(wrong)


def _address_problem(address: str) -> LazyText:
    try:
        url = urlsplit(address)
        is_whole = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        return INVALID_ADDRESS
    if not address:
        return ""
    if not is_whole or any(c.isspace() or not c.isprintable() for c in address):
        return INVALID_ADDRESS
    return ADDRESS_HAS_PASSWORD if "@" in url.netloc else ""
