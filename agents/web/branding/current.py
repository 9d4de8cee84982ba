"""What pages display of the branding, from settings that are in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from agents.db.installation import branding as settings
from agents.db.installation.setting import ROWS
from agents.web.presentation.markdown import render_markdown

from .colors import REVISION

PRODUCT = "Ashiato"
PRODUCT_IN_JAPANESE = "足跡"


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """A text on every page, until its reader dismisses this version of it."""

    text: str
    kind: str

    @property
    def html(self) -> SafeString:
        return render_markdown(self.text)

    @property
    def version(self) -> str:
        return blake2b(f"{self.kind} {self.text}".encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Branding:
    """The branding in one language."""

    name: str
    color: str
    logo: str  # URLs, empty for the product's own
    dark_logo: str
    banner: Banner | None
    start_heading: str
    start_text: str

    @property
    def subtitle(self) -> str:
        """The product's name in Japanese, if the installation has no name of its own."""
        return PRODUCT_IN_JAPANESE if self.name == PRODUCT else ""

    @property
    def stylesheet(self) -> str:
        """The URL of the accent color's stylesheet, empty for the product's own colors."""
        if not self.color:
            return ""
        return reverse("branding:colors", args=[REVISION, self.color.removeprefix("#")])


def current(language: str | None = None) -> Branding:
    """Return the branding in a language, or in the active one."""
    return from_values(ROWS.get(), language or get_language())


def last_read() -> Branding:
    """Return the branding without asking the database, which may be down."""
    return from_values(ROWS.last_read, get_language())


def from_values(values: Mapping[str, Any], language: str | None) -> Branding:
    """Return the branding with these values of settings."""
    logo = values.get(settings.LOGO, "")
    dark_logo = values.get(settings.DARK_LOGO, "")
    return Branding(
        name=settings.NAME.find(values, language) or PRODUCT,
        color=values.get(settings.COLOR_SETTING.key, ""),
        logo=_logo_url(logo or dark_logo),
        dark_logo=_logo_url(dark_logo or logo),
        banner=_find_banner(values, language),
        start_heading=settings.START_HEADING.find(values, language),
        start_text=settings.START_TEXT.find(values, language),
    )


def _find_banner(values: Mapping[str, Any], language: str | None) -> Banner | None:
    text = settings.BANNER.find(values, language)
    last_day = values.get(settings.BANNER_UNTIL.key, "")
    if not text or (last_day and timezone.localdate().isoformat() > last_day):
        return None
    return Banner(text=text, kind=values.get(settings.BANNER_KIND.key, settings.INFO))


def _logo_url(name: str) -> str:
    return reverse("branding:logo", args=[name]) if name else ""
