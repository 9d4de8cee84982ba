"""The tools that agents may be given, wherever they come from."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from .rights import Restricted
from .secret import EncryptedJSONField
from .servers import McpServer


class ToolRegistration(Restricted):
    """A tool that agents may be given. Switched off here, it is off for all of them."""

    class Source(models.TextChoices):
        OWN = "own", _("this installation")
        HTTP = "http", _("an HTTP endpoint")
        MCP = "mcp", _("an MCP server")

    class Approval(models.TextChoices):
        TOOL = "tool", _("as the tool says")
        ALWAYS = "always", _("always")
        NEVER = "never", _("never")

    class Effect(models.TextChoices):
        TOOL = "", _("as the tool says")
        READ = "read", _("only reads")
        IDEMPOTENT = "idempotent", _("may be repeated")
        AT_MOST_ONCE = "at_most_once", _("must not be repeated")

    class Method(models.TextChoices):
        GET = "GET"
        POST = "POST"
        PUT = "PUT"
        PATCH = "PATCH"
        DELETE = "DELETE"

    name = models.SlugField(_("name"), max_length=64, unique=True)
    source = models.CharField(
        _("source"), max_length=10, choices=Source, default=Source.OWN, editable=False
    )
    description = models.TextField(
        _("description"),
        blank=True,
        help_text=_("Replaces what the model is told of this tool; empty keeps its own words."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    timeout = models.PositiveIntegerField(
        _("timeout"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_("Seconds after which a call is given up."),
    )
    approval = models.CharField(
        _("asks a person first"),
        max_length=10,
        choices=Approval,
        default=Approval.TOOL,
        help_text=_("Whether the person who asked has to agree to each call."),
    )
    effect = models.CharField(
        _("effect"), max_length=12, choices=Effect, blank=True, default=Effect.TOOL
    )
    fallback = models.ForeignKey(
        "self",
        verbose_name=_("stand-in"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The tool that is used in its place where it is out of order."),
    )
    definition = models.JSONField(
        _("definition"),
        null=True,
        blank=True,
        help_text=_("As the model is told of it: name, description and parameters."),
    )
    pending = models.JSONField(
        _("changed definition"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("What its server says now, until an administrator accepts it."),
    )
    server = models.ForeignKey(
        McpServer,
        verbose_name=_("MCP server"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="tools",
    )
    is_gone = models.BooleanField(_("gone from its server"), default=False, editable=False)
    endpoint = models.CharField(_("endpoint"), max_length=500, blank=True)
    headers = EncryptedJSONField(
        _("headers"),
        blank=True,
        default=dict,
        help_text=_("A JSON object of texts. It is kept encrypted and never shown again."),
    )
    method = models.CharField(_("method"), max_length=6, choices=Method, default=Method.POST)

    class Meta:
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
