"""A user's chats as a list."""

from collections.abc import Iterable
from functools import cache

from django import template
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import escape
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models import Run
from agents.web.presentation.template_cache import RUN_PLACEHOLDER
from chat.listing.search import FoundSession
from chat.listing.session_list import ListedSession
from chat.models import ChatSession

register = template.Library()
Row = ChatSession | ListedSession

# Private-use characters, which no translation contains.
TITLE_PLACEHOLDER, NAME_PLACEHOLDER = "\ue000", "\ue001"


@register.simple_tag
def session_rows(rows: Iterable[Row], here: int | None) -> SafeString:
    """Render rows from a cached template, since they only differ in id and names."""
    language = get_language()
    return mark_safe("".join(_render_row(row, row.pk == here, language) for row in rows))


@register.simple_tag
def found_row(found: FoundSession, here: int | None, query: str) -> SafeString:
    """Render a search result's row, with the words marked in its title.

    Its link keeps the search, so that the next result is one click away.
    """
    html = _render_row(found.row, found.row.pk == here, get_language())
    plain_title = f'<span class="title">{escape(found.row.title)}</span>'
    html = html.replace(plain_title, f'<span class="title">{found.title}</span>')
    url = reverse("chat:session", args=[found.row.pk])
    search_url = f"{url}?{urlencode({'q': query})}"
    return mark_safe(html.replace(f'href="{url}"', f'href="{search_url}"', 1))


def _render_row(row: Row, is_here: bool, language: str) -> str:
    status = row.live.status if row.live else ""
    flags = is_here, row.is_shared, bool(row.whose), row.is_pinned, row.is_public
    html = _cached_row(language, status, *flags)
    html = html.replace(str(RUN_PLACEHOLDER), str(row.pk)).replace(
        NAME_PLACEHOLDER, escape(row.whose)
    )
    return html.replace(TITLE_PLACEHOLDER, escape(row.title))


@cache
def _cached_row(
    language: str,
    status: str,
    is_here: bool,
    is_shared: bool,
    is_others: bool,
    is_pinned: bool,
    is_public: bool,
) -> str:
    row = ChatSession(pk=RUN_PLACEHOLDER, title=TITLE_PLACEHOLDER, is_shared=is_shared)
    row.whose = NAME_PLACEHOLDER if is_others else ""
    row.is_pinned = is_pinned
    row.live = Run(status=status) if status else None
    about = {"row": row, "is_here": is_here, "is_public": is_public and not is_others}
    return render_to_string("chat/listing/_sessions.html#session_row", about)
