"""Tools that agents can use."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..secret import EncryptedJSONField
from .databases import DatabaseConnection
from .rights import Restricted
from .servers import McpServer

MAX_CACHE_SECONDS = 7 * 24 * 3_600


class ToolRegistration(Restricted):
    """A tool that agents can use. Disabled here, it is off for all of them."""

    class Source(models.TextChoices):
        OWN = "own", _("Built-in")
        HTTP = "http", _("HTTP endpoint")
        MCP = "mcp", _("MCP server")
        DATABASE = "database", _("Database")

    class ApprovalMode(models.TextChoices):
        TOOL = "tool", _("as declared by the tool")
        ALWAYS = "always", _("always")
        NEVER = "never", _("never")

    class Effect(models.TextChoices):
        TOOL = "", _("as declared by the tool")
        READ = "read", _("read-only")
        IDEMPOTENT = "idempotent", _("makes changes")
        AT_MOST_ONCE = "at_most_once", _("irreversible")

    class AlwaysAllow(models.TextChoices):
        NEVER = "never", _("never")
        CHAT = "chat", _("in one chat")
        USER = "user", _("in one chat or in all of a user's chats")

    class ResultCache(models.TextChoices):
        OFF = "", _("off")
        PERSON = "person", _("on, separately for each user")
        PUBLIC = "public", _("on, shared by all users of the tool")

    class SearchService(models.TextChoices):
        NONE = "", _("none")
        SEARXNG = "searxng", "SearXNG"
        BRAVE = "brave", "Brave Search"
        TAVILY = "tavily", "Tavily"

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
        help_text=_(
            "Replaces the description the model sees. Leave empty to use the tool's own."
        ),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    timeout = models.PositiveIntegerField(
        _("timeout (seconds)"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_("Time limit for each call, 1–600 seconds."),
    )
    max_retries = models.PositiveSmallIntegerField(
        _("max retries"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(10)],
        help_text=_(
            "How many times a failed call is retried, 0–10. Leave empty to use the value "
            "in Settings. Irreversible calls are never retried."
        ),
    )
    collections = models.ManyToManyField(
        "agents.Collection",
        verbose_name=_("collections"),
        blank=True,
        related_name="+",
        limit_choices_to={"owner": None, "topic": ""},
        help_text=_(
            "What this tool searches, as far as the agent and the user can open it. If none is "
            "selected, it searches everything they can open."
        ),
    )
    approval = models.CharField(
        _("requires approval"),
        max_length=10,
        choices=ApprovalMode,
        default=ApprovalMode.TOOL,
        help_text=_("Whether the user must approve each call."),
    )
    always_allow = models.CharField(
        _("users can always allow it"),
        max_length=8,
        choices=AlwaysAllow,
        default=AlwaysAllow.NEVER,
        db_default=AlwaysAllow.NEVER,
        help_text=_(
            "Whether users can approve all further calls at once. Irreversible calls can be "
            "allowed only within one chat."
        ),
    )
    top_k = models.PositiveSmallIntegerField(
        _("passages per search"),
        default=5,
        db_default=5,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
        help_text=_("How many passages a search returns, 1–50."),
    )
    min_score = models.FloatField(
        _("minimum score"),
        default=0.0,
        db_default=0.0,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text=_("Passages with a lower score are left out. 0 returns all."),
    )
    min_certainty = models.FloatField(
        _("minimum certainty"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text=_(
            "Below this, a search reports that nothing relevant was found. Leave empty for "
            "the installation's default (ASHIATO_SEARCH_MIN_SCORE)."
        ),
    )
    rerank_model = models.CharField(
        _("re-ranking model"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Reorders the best passages, which takes time and tokens. Enter a label from "
            "Models or a LiteLLM name; names with “rerank” are called as re-ranking "
            "models. Leave empty for the agent's own model, which is asked only if a search is "
            "uncertain. “off” asks none."
        ),
    )
    rerank_count = models.PositiveSmallIntegerField(
        _("passages to re-rank"),
        default=20,
        db_default=20,
        validators=[MinValueValidator(2), MaxValueValidator(50)],
        help_text=_("How many of the best passages the model reads, 2–50."),
    )
    rerank_seconds = models.FloatField(
        _("re-ranking timeout (seconds)"),
        default=5.0,
        db_default=5.0,
        validators=[MinValueValidator(0.5), MaxValueValidator(60)],
        help_text=_("After this time, the passages keep their original order."),
    )
    search_service = models.CharField(
        _("search service"),
        max_length=10,
        choices=SearchService,
        blank=True,
        default=SearchService.NONE,
        db_default="",
        help_text=_(
            "Who answers web searches. Queries are sent there. Agents have the tool once a "
            "service is chosen."
        ),
    )
    any_page = models.BooleanField(
        _("open any page"),
        default=False,
        db_default=False,
        help_text=_(
            "When off, only pages that the user, a search or another page named in the run can "
            "be read. When on, text from outside could have a model send data to any server, "
            "in a URL."
        ),
    )
    effect = models.CharField(
        _("side effects"), max_length=12, choices=Effect, blank=True, default=Effect.TOOL
    )
    result_cache = models.CharField(
        _("cache results"),
        max_length=8,
        choices=ResultCache,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Identical calls return the saved result. Only read-only calls are cached; any "
            "other call to the same place deletes what is saved. Share results only if "
            "they are the same for everyone."
        ),
    )
    result_cache_seconds = models.PositiveIntegerField(
        _("cache lifetime (seconds)"),
        default=300,
        db_default=300,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CACHE_SECONDS)],
        help_text=_("How long a saved result is used, up to 7 days."),
    )
    fallback = models.ForeignKey(
        "self",
        verbose_name=_("fallback tool"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Used instead when this tool is failing."),
    )
    definition = models.JSONField(
        _("definition"),
        null=True,
        blank=True,
        help_text=_("What the model sees: name, description and parameters."),
    )
    pending = models.JSONField(
        _("pending definition"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("The server's current definition, until an administrator accepts it."),
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
    connection = models.ForeignKey(
        DatabaseConnection,
        verbose_name=_("database"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="tools",
    )
    is_gone = models.BooleanField(_("removed from server"), default=False, editable=False)
    endpoint = models.CharField(_("endpoint"), max_length=500, blank=True)
    headers = EncryptedJSONField(
        _("headers"),
        blank=True,
        default=dict,
        help_text=_(
            "A JSON object with string values. Stored encrypted and never displayed again."
        ),
    )
    method = models.CharField(_("method"), max_length=6, choices=Method, default=Method.POST)

    class Meta:
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
