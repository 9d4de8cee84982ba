"""A user's chats as a list."""

from collections.abc import Iterable
from functools import cache
from itertools import groupby

from django import template
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from agents.models import Run
from agents.web.presentation.template_cache import RUN_PLACEHOLDER
from chat import listing
from chat.models import ChatSession

register = template.Library()

# Private-use characters, which no translation contains.
TITLE_PLACEHOLDER, NAME_PLACEHOLDER = "\ue000", "\ue001"


@register.filter
def by_day(rows: Iterable[ChatSession]) -> list[tuple[str, list[ChatSession]]]:
    """Group chats by when they were last used."""
    headings, midnights = (_("Today"), _("Yesterday"), _("Earlier")), listing.day_starts()
    days = groupby(rows, lambda row: sum(row.updated_at < m for m in midnights))
    return [(headings[day], list(group)) for day, group in days]


@register.simple_tag
def session_rows(rows: Iterable[ChatSession], here: int | None) -> SafeString:
    """Render rows from a cached template, since they only differ in id and names."""
    language = get_language()
    return mark_safe("".join(_render_row(row, row.pk == here, language) for row in rows))


def _render_row(row: ChatSession, is_here: bool, language: str) -> str:
    status = row.live.status if row.live else ""
    drawn = _cached_row(language, status, is_here, row.is_shared, bool(row.whose))
    drawn = drawn.replace(str(RUN_PLACEHOLDER), str(row.pk)).replace(
        NAME_PLACEHOLDER, escape(row.whose)
    )
    return drawn.replace(TITLE_PLACEHOLDER, escape(row.title))


@cache
def _cached_row(
    language: str, status: str, is_here: bool, is_shared: bool, is_others: bool
) -> str:
    row = ChatSession(pk=RUN_PLACEHOLDER, title=TITLE_PLACEHOLDER, is_shared=is_shared)
    row.whose = NAME_PLACEHOLDER if is_others else ""
    row.live = Run(status=status) if status else None
    about = {"row": row, "is_here": is_here}
    return render_to_string("chat/_sidebar.html#session_row", about)
