"""How the installation calls itself and looks: name, logo, color, banner and start page.

Texts have a value per language. They are settings, so that pages read them from memory, and the
audit log and configuration files have them; their page is *Settings → Branding*.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.dateparse import parse_date
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models.types import LazyText

from .setting import Section, TextSetting

INFO = "info"
WARNING = "warning"
BANNER_KINDS = (INFO, WARNING)
MAX_QUESTIONS = 4
LABEL = gettext_lazy("{label} ({language})")
COLOR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalizedText:
    """A text with a setting for each language."""

    name: str
    label: LazyText
    by_language: Mapping[str, TextSetting]

    def find(self, values: Mapping[str, Any], language: str | None) -> str:
        """Return the text in this language, else in another one; empty if there is none."""
        first = (language or "").partition("-")[0]
        for code in sorted(self.by_language, key=lambda code: code != first):
            if text := values.get(self.by_language[code].key):
                return str(text)
        return ""


def _localized(key: str, label: LazyText, **options: Any) -> LocalizedText:
    by_language = {
        code: TextSetting(
            key=f"{key}_{code}",
            section=Section.BRANDING,
            label=format_lazy(LABEL, label=label, language=language),
            **options,
        )
        for code, language in settings.LANGUAGES
    }
    return LocalizedText(name=key, label=label, by_language=by_language)


def _parse_color(text: str) -> str:
    color = text.lower()
    if not COLOR.fullmatch(color):
        raise ValidationError(_("Enter a color such as #2563eb."))
    return color


def _parse_kind(text: str) -> str:
    if text not in BANNER_KINDS:
        raise ValidationError(_("Must be info or warning."))
    return text


def _parse_day(text: str) -> str:
    try:
        day = parse_date(text)
    except ValueError:
        day = None
    if day is None:
        raise ValidationError(_("Enter a date such as 2027-01-31."))
    return day.isoformat()


NAME = _localized("brand_name", gettext_lazy("Name"), maximum=40)
BANNER = _localized("banner", gettext_lazy("Banner"), maximum=300)
START_HEADING = _localized("start_heading", gettext_lazy("Heading"), maximum=80)
START_TEXT = _localized("start_text", gettext_lazy("Text below it"), maximum=200)
START_QUESTIONS = _localized(
    "start_questions",
    gettext_lazy("Example questions"),
    maximum=200,
    max_lines=MAX_QUESTIONS,
)
COLOR_SETTING = TextSetting(
    key="brand_color",
    section=Section.BRANDING,
    label=gettext_lazy("Accent color"),
    maximum=7,
    parse=_parse_color,
)
BANNER_KIND = TextSetting(
    key="banner_kind",
    section=Section.BRANDING,
    label=gettext_lazy("Kind of banner"),
    default=INFO,
    maximum=10,
    parse=_parse_kind,
)
BANNER_UNTIL = TextSetting(
    key="banner_until",
    section=Section.BRANDING,
    label=gettext_lazy("Last day of the banner"),
    maximum=10,
    parse=_parse_day,
)
LOCALIZED = (NAME, BANNER, START_HEADING, START_TEXT, START_QUESTIONS)
SETTINGS: dict[str, TextSetting] = {
    setting.key: setting
    for setting in (
        *(setting for text in LOCALIZED for setting in text.by_language.values()),
        COLOR_SETTING,
        BANNER_KIND,
        BANNER_UNTIL,
    )
}
# Their rows have a file, so configuration files don't have them.
LOGO = "brand_logo"
DARK_LOGO = "brand_logo_dark"
LOGOS: dict[str, LazyText] = {
    LOGO: gettext_lazy("Logo"),
    DARK_LOGO: gettext_lazy("Logo on dark backgrounds"),
}
