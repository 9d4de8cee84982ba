"""One setting of the installation: its type, limits and current value."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.db.row_cache import RowCache
from agents.db.sanitize import visible_name
from agents.models import InstallationSetting

MICROS = 1_000_000

Value = TypeVar("Value", int, float, bool, str, int | None)

ROWS: RowCache[dict[str, Any]] = RowCache(
    InstallationSetting,
    lambda: dict(InstallationSetting.objects.values_list("key", "value")),
    dict,
)


class Kind(StrEnum):
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    MONEY = "money"  # in millionths of a dollar
    TEXT = "text"


class Section(StrEnum):
    QUOTAS = "quotas"
    PEOPLE = "people"
    CHAT = "chat"
    FILES = "files"
    SEARCH = "search"
    MEMORY = "memory"
    MODELS = "models"
    TOOLS = "tools"
    RETENTION = "retention"
    BRANDING = "branding"
    DEFAULT_MODELS = "default_models"

    @property
    def label(self) -> Promise:
        return SECTION_LABELS[self]


SECTION_LABELS = {
    Section.QUOTAS: gettext_lazy("Default usage limits"),
    Section.PEOPLE: gettext_lazy("Users and sign-up"),
    Section.CHAT: gettext_lazy("Chat and sharing"),
    Section.FILES: gettext_lazy("Files and uploads"),
    Section.SEARCH: gettext_lazy("Search and documents"),
    Section.MEMORY: gettext_lazy("Memory"),
    Section.MODELS: gettext_lazy("Models"),
    Section.TOOLS: gettext_lazy("Tools"),
    Section.RETENTION: gettext_lazy("Retention"),
    Section.BRANDING: gettext_lazy("Branding"),
    Section.DEFAULT_MODELS: gettext_lazy("Default models"),
}
# They aren't on the page Settings.
SECTIONS_WITH_PAGE = frozenset({Section.BRANDING, Section.DEFAULT_MODELS})


@cache
def _is_in_settings(name: str) -> bool:
    return hasattr(settings, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[Value]):
    """What an administrator can change without a restart; `None` means no limit."""

    key: str
    section: Section
    label: Promise
    help: Promise | str = ""
    unit: Promise | str = ""
    default: Value
    kind: Kind = Kind.INTEGER
    minimum: float = 0
    maximum: float = 10**9
    is_optional: bool = False
    environment: str = ""  # the field of `project.environment.Environment`

    @property
    def value(self) -> Value:
        """The value in force: of the environment, of the row, or the default."""
        if self.environment and self.is_fixed:
            fixed: Value = self._environment_value()
            return fixed
        saved: Value = ROWS.get().get(self.key, self.default)
        return saved

    @property
    def is_fixed(self) -> bool:
        """Whether an environment variable sets it."""
        if not self.environment:
            return False
        is_set = self.environment in settings.ENVIRONMENT.model_fields_set
        return is_set or self._environment_value() != self.default

    @property
    def is_changed(self) -> bool:
        return not self.is_fixed and self.value != self.default

    @property
    def variable(self) -> str:
        return f"ASHIATO_{self.environment.upper()}" if self.environment else ""

    def _environment_value(self) -> Any:
        """Return the value of the start, which settings repeat under their own name."""
        name = self.environment.upper()
        if _is_in_settings(name):
            return getattr(settings, name)
        return getattr(settings.ENVIRONMENT, self.environment)

    def clean(self, value: Any) -> Any:
        """Return a valid value of a row or a file; raise ValidationError."""
        if value is None and self.is_optional:
            return None
        if self.kind is Kind.BOOLEAN:
            if not isinstance(value, bool):
                raise ValidationError(_("Must be true or false."))
            return value
        allowed = (int, float) if self.kind is Kind.NUMBER else (int,)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise ValidationError(_("Must be a number."))
        if not self.minimum <= value <= self.maximum:
            raise ValidationError(
                _("Must be between %(least)s and %(most)s.")
                % {"least": self.display(self.minimum), "most": self.display(self.maximum)}
            )
        return value

    def display(self, value: Any) -> str:
        """Return a value as a person reads it, without its unit."""
        if value is None:
            return _("No limit")
        if self.kind is Kind.BOOLEAN:
            return _("On") if value else _("Off")
        if self.kind is Kind.MONEY:
            return f"${value / MICROS:,.2f}"
        if self.kind is Kind.TEXT:
            return str(value) or _("None")
        return f"{value:,g}" if self.kind is Kind.NUMBER else f"{int(value):,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSetting(Setting[str]):
    """A text; the default if it is empty."""

    kind: Kind = Kind.TEXT
    default: str = ""
    parse: Callable[[str], str] = str  # returns a valid text, or raises ValidationError
    max_lines: int = 1

    def clean(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError(_("Must be text."))
        lines = (visible_name(line) for line in value.splitlines())
        written = [line for line in lines if line]
        text = " ".join(written) if self.max_lines == 1 else "\n".join(written)
        if len(text.splitlines()) > self.max_lines:
            raise ValidationError(
                _("Enter %(most)d lines or fewer.") % {"most": self.max_lines}
            )
        if any(len(line) > self.maximum for line in text.splitlines()):
            raise ValidationError(
                _("Use %(most)d characters or fewer.") % {"most": self.maximum}
            )
        return self.parse(text) if text else self.default


def save(setting: Setting[Any], value: Any) -> bool:
    """Save a value, or delete its row if it is the default; return whether it changed."""
    value = setting.clean(value)
    if setting.is_fixed:
        raise ValidationError(
            _("%(name)s is set by an environment variable.") % {"name": setting.variable}
        )
    if value == setting.value:
        return False
    if value == setting.default:
        for row in InstallationSetting.objects.filter(key=setting.key):
            row.delete()
    else:
        InstallationSetting.objects.update_or_create({"value": value}, key=setting.key)
    return True
