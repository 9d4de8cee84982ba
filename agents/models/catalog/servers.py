"""MCP servers, sign-ins to them, and samples of their status."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..secret import EncryptedJSONField, EncryptedTextField
from ..sentence_fields import SentenceField


class McpServer(models.Model):
    """A configured server, with its last known status."""

    class Transport(models.TextChoices):
        STDIO = "stdio", _("Program on this machine (stdio)")
        HTTP = "http", _("URL (streamable HTTP)")
        SSE = "sse", _("URL (SSE, older servers)")

    class Isolation(models.TextChoices):
        SHARED = "shared", _("Shared: everyone uses the same process, session and files")
        PERSON = "person", _("Per user: each user has a process, session and files")
        CHAT = "chat", _("Per chat: each chat has a process, session and files")

    class SignIn(models.TextChoices):
        NONE = "", _("None, or with headers")
        SHARED = "shared", _("OAuth: everyone uses one sign-in")
        USER = "user", _("OAuth: each user signs in")

    class State(models.TextChoices):
        UNKNOWN = "unknown", _("not tested yet")
        CONNECTING = "connecting", _("connecting")
        READY = "ready", _("ready")
        FAILED = "failed", _("failing")
        STOPPED = "stopped", _("stopped")

    name = models.SlugField(
        _("name"),
        max_length=40,
        unique=True,
        help_text=_("Prefix of its tool names."),
    )
    transport = models.CharField(
        _("transport"), max_length=10, choices=Transport, default=Transport.HTTP
    )
    url = models.CharField(_("URL"), max_length=500, blank=True)
    command = models.CharField(
        _("command"),
        max_length=500,
        blank=True,
        help_text=_("A single program, started without a shell."),
    )
    args = models.JSONField(
        _("arguments"),
        default=list,
        blank=True,
        help_text=_('A JSON array of strings, e.g. ["--verbose"].'),
    )
    folders = models.TextField(
        _("folders this server can use"),
        blank=True,
        default="",
        help_text=_("One per line, read-only. Add :rw to let it write, e.g. /srv/reports:rw."),
    )
    env = EncryptedJSONField(
        _("environment variables"),
        blank=True,
        default=dict,
        help_text=_(
            "A JSON object with string values. Stored encrypted and never displayed again."
        ),
    )
    headers = EncryptedJSONField(
        _("headers"),
        blank=True,
        default=dict,
        help_text=_(
            "A JSON object with string values. Stored encrypted and never displayed again."
        ),
    )
    sign_in = models.CharField(
        _("sign-in"),
        max_length=10,
        choices=SignIn,
        blank=True,
        default=SignIn.NONE,
        db_default="",
        help_text=_(
            "With OAuth, users sign in on the server’s own page. Choose each user if its tools "
            "show or change what belongs to one person."
        ),
    )
    oauth_client_id = models.CharField(
        _("client ID"), max_length=500, blank=True, default="", db_default=""
    )
    oauth_client_secret = EncryptedTextField(_("client secret"), blank=True, default="")
    # How this product is registered; with a client ID, only where that ID was used first.
    oauth_client = EncryptedJSONField(blank=True, default=dict, editable=False)
    enabled = models.BooleanField(_("enabled"), default=True)
    trusts_annotations = models.BooleanField(
        _("trust this server's annotations"),
        default=False,
        help_text=_(
            "When off, every tool requires approval, even if the server marks it read-only."
        ),
    )
    timeout = models.PositiveIntegerField(
        _("timeout (seconds)"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_(
            "Time limit for each call, 1–600 seconds. Each progress report restarts it."
        ),
    )
    connect_timeout = models.PositiveIntegerField(
        _("start timeout (seconds)"),
        default=60,
        validators=[MinValueValidator(5), MaxValueValidator(600)],
        help_text=_(
            "Time limit for starting and connecting, 5–600 seconds. It doesn't count against a "
            "call's timeout. The first start of npx, uvx or a container downloads packages."
        ),
    )
    isolation = models.CharField(
        _("sharing"),
        max_length=10,
        choices=Isolation,
        default=Isolation.SHARED,
        help_text=_(
            "Choose per user or per chat if the server stores something, e.g. notes, files "
            "or a signed-in account. Each instance starts with its first call."
        ),
    )
    max_instances = models.PositiveIntegerField(
        _("max instances"),
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_(
            "Per user or per chat: how many run at once in each process, 1–100. The one "
            "unused for longest stops first."
        ),
    )
    memory_mb = models.PositiveIntegerField(
        _("max memory (MB)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(64), MaxValueValidator(1_000_000)],
        help_text=_(
            "Includes all processes the program starts. Leave empty to use the limit in "
            "Settings."
        ),
    )
    cpu_seconds = models.PositiveIntegerField(
        _("max CPU time in 5 minutes (seconds)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(5), MaxValueValidator(1_000_000)],
        help_text=_("Leave empty to use the limit in Settings. One busy core uses 300 s."),
    )
    files_deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    state = models.CharField(
        _("state"), max_length=12, choices=State, default=State.UNKNOWN, editable=False
    )
    state_since = models.DateTimeField(_("since"), null=True, blank=True, editable=False)
    last_error = SentenceField(_("last error"), blank=True, editable=False)
    latency_ms = models.FloatField(_("latency"), null=True, blank=True, editable=False)
    restarts = models.PositiveIntegerField(_("restarts"), default=0, editable=False)

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        ordering = ["name"]
        permissions = [
            ("use_stdio_servers", "Can set up MCP servers that are programs on this machine")
        ]

    def __str__(self) -> str:
        return self.name


class McpSignIn(models.Model):
    """An OAuth sign-in to a server: one user's, or without a user everyone's."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="sign_ins")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    # Tokens are never sent to another URL.
    url = models.CharField(_("URL"), max_length=500)
    tokens = EncryptedJSONField(default=dict, editable=False)
    # As which this product was registered when the user signed in; only it can refresh them.
    client = EncryptedJSONField(default=dict, editable=False)
    metadata = models.JSONField(
        default=dict, help_text=_("What the authorization server says about itself.")
    )
    expires_at = models.FloatField(null=True, help_text=_("Unix time of the access token."))
    signed_in_at = models.DateTimeField(_("signed in"))

    class Meta:
        verbose_name = _("sign-in")
        verbose_name_plural = _("sign-ins")
        constraints = [
            models.UniqueConstraint(fields=["server", "user"], name="one_mcp_sign_in_per_user"),
            models.UniqueConstraint(
                fields=["server"],
                condition=models.Q(user=None),
                name="one_shared_mcp_sign_in",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server_id} {self.user_id or '*'}"


class McpSignInAttempt(models.Model):
    """A user who is signing in: the page that comes back may reach another process."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    state = models.CharField(max_length=200, blank=True, db_index=True)
    next_url = models.CharField(max_length=300, blank=True)
    response = EncryptedJSONField(blank=True, default=dict, editable=False)
    is_done = models.BooleanField(default=False)
    error = SentenceField(blank=True)
    started_at = models.DateTimeField()

    class Meta:
        verbose_name = _("sign-in attempt")
        verbose_name_plural = _("sign-in attempts")

    def __str__(self) -> str:
        return f"{self.server_id} {self.user_id}"


class ServerSample(models.Model):
    """A server's status at one moment; a day of samples shows its reliability."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField(_("sampled at"))
    is_up = models.BooleanField(_("healthy"))
    latency_ms = models.FloatField(_("latency"), null=True, blank=True)

    class Meta:
        verbose_name = _("sample")
        verbose_name_plural = _("samples")
        ordering = ["server_id", "at"]
        indexes = [models.Index(fields=["server", "at"], name="samples_of_a_server")]

    def __str__(self) -> str:
        return f"{self.server_id} {self.at:%H:%M:%S} {self.is_up}"
