"""Databases that agents can query."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..secret import EncryptedTextField
from ..sentence_fields import SentenceField
from ..types import LazyText

SAMPLE_NAME = "sample"
SAMPLE_TOOL = "database"
REQUIRED = _("This field is required.")


class DatabaseConnection(models.Model):
    """A database, what of it agents can read, and how it was when it was last checked."""

    class Kind(models.TextChoices):
        SQLITE = "sqlite", _("SQLite file")
        POSTGRESQL = "postgresql", "PostgreSQL"
        MYSQL = "mysql", _("MySQL or MariaDB")

    class Tls(models.TextChoices):
        OFF = "off", _("Off (only on a trusted network)")
        REQUIRE = "require", _("Encrypted, certificate not checked")
        VERIFY = "verify", _("Encrypted, certificate and host name checked")

    class State(models.TextChoices):
        UNKNOWN = "unknown", _("not tested yet")
        READY = "ready", _("ready")
        FAILED = "failed", _("failing")

    name = models.SlugField(
        _("name"),
        max_length=40,
        unique=True,
        help_text=_("Part of the tool's name, e.g. query_sales. Can't be changed later."),
    )
    kind = models.CharField(_("kind"), max_length=12, choices=Kind, default=Kind.POSTGRESQL)
    file = models.CharField(
        _("file"),
        max_length=200,
        blank=True,
        help_text=_("A file in the folder for databases (ASHIATO_DATABASE_FILES)."),
    )
    host = models.CharField(
        _("host"),
        max_length=255,
        blank=True,
        help_text=_("E.g. db.example.com, or the path of a socket on this machine."),
    )
    port = models.PositiveIntegerField(
        _("port"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(65_535)],
        help_text=_("Leave empty for the default: 5432 (PostgreSQL) or 3306 (MySQL)."),
    )
    database = models.CharField(_("database"), max_length=128, blank=True)
    username = models.CharField(
        _("username"),
        max_length=128,
        blank=True,
        help_text=_("A user that can only read, if possible."),
    )
    password = EncryptedTextField(_("password"), blank=True, default="")
    tls = models.CharField(_("encryption"), max_length=8, choices=Tls, default=Tls.REQUIRE)
    ca_certificate = models.TextField(
        _("CA certificate"),
        blank=True,
        default="",
        help_text=_("PEM text, if your server's certificate isn't from a public authority."),
    )
    description = models.TextField(
        _("description for the model"),
        blank=True,
        default="",
        help_text=_(
            "What the database holds and when to use it. The model sees it before the tables."
        ),
    )
    tables = models.JSONField(
        _("allowed tables"),
        null=True,
        blank=True,
        help_text=_(
            'All tables, or a JSON object: {"orders": ["id", "total"], "customers": null}. '
            "null allows all columns."
        ),
    )
    max_rows = models.PositiveIntegerField(
        _("max rows"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000)],
        help_text=_("Max rows per query, 1–1,000. Leave empty to use the value in Settings."),
    )
    timeout = models.PositiveIntegerField(
        _("query timeout (seconds)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(120)],
        help_text=_(
            "A query is stopped after this time, 1–120 seconds. Leave empty to use the "
            "value in Settings."
        ),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    is_sample = models.BooleanField(default=False, editable=False)
    state = models.CharField(
        _("state"), max_length=12, choices=State, default=State.UNKNOWN, editable=False
    )
    checked_at = models.DateTimeField(_("last checked"), null=True, blank=True, editable=False)
    last_error = SentenceField(_("last error"), blank=True, default="", editable=False)
    latency_ms = models.FloatField(_("latency"), null=True, blank=True, editable=False)
    version = models.CharField(_("version"), max_length=60, blank=True, editable=False)
    powers = models.JSONField(default=list, blank=True, editable=False)
    schema = models.JSONField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("database")
        verbose_name_plural = _("databases")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row; a new one gets its tool."""
        is_new = self._state.adding
        super().save(*args, **kwargs)
        if is_new and not self.is_sample:
            self.tools.get_or_create(name=self.tool_name, defaults={"source": "database"})

    def clean(self) -> None:
        wrong: dict[str, LazyText] = {}
        if self.kind == self.Kind.SQLITE:
            if not self.file and not self.is_sample:
                wrong["file"] = REQUIRED
        else:
            fields = ("host", "database", "username")
            wrong |= {name: REQUIRED for name in fields if not getattr(self, name)}
        if problem := _tables_problem(self.tables):
            wrong["tables"] = problem
        if wrong:
            raise ValidationError(wrong)

    @property
    def tool_name(self) -> str:
        return SAMPLE_TOOL if self.is_sample else f"query_{self.name}".replace("-", "_")


def _tables_problem(tables: Any) -> LazyText:
    if tables is None:
        return ""
    is_valid = isinstance(tables, dict) and all(
        columns is None
        or (isinstance(columns, list) and columns and all(isinstance(c, str) for c in columns))
        for columns in tables.values()
    )
    if not is_valid:
        return _('Enter {"table": ["column", …]} or {"table": null} for all columns.')
    return "" if tables else _("Select at least one table, or allow all tables.")
