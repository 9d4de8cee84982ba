"""A user's chats as a list."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.web.presentation.element import Element, join
from agents.web.presentation.formats.icons import cached_url, icon
from chat.models import ChatSession
from chat.sessions.listing import session_list
from chat.sessions.listing.search import FoundSession
from chat.sessions.listing.session_list import ListedSession

register = template.Library()
Row = ChatSession | ListedSession

SESSION_ROW = Element(
    """\
<li id="session-{pk}" class="session" data-pk="{pk}"{pinned}{others}>
  <input type="checkbox" class="session-check" aria-label="{select}">
  <a href="{href}"{current}>{status}<span class="title">{title}</span>{public}{members}</a>
  <span class="session-actions needs-js">\
<button type="button" class="icon-button" data-menu aria-haspopup="menu" title="{more}">\
{icon}<span class="visually-hidden">{actions}</span></button></span>
</li>
""",
    more=gettext_lazy("More actions"),
    icon=icon("more"),
)
CHANGED_ROWS = Element('<ul id="session-changes" hidden>{rows}</ul>')
STATUS_DOT = '<span class="{dot}"><span class="visually-hidden">{label}</span></span>'
WAITING_DOT = Element(STATUS_DOT, dot="waiting-dot", label=gettext_lazy("waiting for you"))
RUNNING_DOT = Element(STATUS_DOT, dot="running-dot", label=gettext_lazy("running"))
MARK = '<span class="whose" title="{0}">{1}<span class="visually-hidden">{0}</span></span>'
OWNER = """\
<span class="whose">{}<span aria-hidden="true">{}</span>\
<span class="visually-hidden">{}</span></span>"""


@register.simple_tag
def session_rows(rows: Iterable[Row], page_chat: int | None) -> SafeString:
    """Render the rows of a list, on the page of one of its chats or another page."""
    return render_rows([(row, row.title, "") for row in rows], page_chat)


@register.simple_tag
def found_row(result: FoundSession, page_chat: int | None, query: str) -> SafeString:
    """Render a search result's row, with the terms marked in its title.

    Its link keeps the search, so that the next result is one click away.
    """
    link_query = f"?{urlencode({'q': query})}"
    return render_rows([(result.row, result.title, link_query)], page_chat)


@register.inclusion_tag("chat/listing/_sessions.html", takes_context=True)
def chat_list(context: template.Context) -> dict[str, Any]:
    """Render the list on a page that isn't a chat; a chat's page has read it already."""
    user = context["user"]
    listed = session_list.read(user)
    return {
        "sections": session_list.sections(listed, session_list.live_runs(user)),
        "cursor": listed.cursor,
        # A template takes long to notice that a name is missing.
        "session": None,
        "query": "",
        "is_archive": False,
    }


def render_changed_rows(rows: Iterable[Row], page_chat: int) -> SafeString:
    """Render rows that replace those on a page."""
    return CHANGED_ROWS(rows=session_rows(rows, page_chat))


def render_rows(rows: Iterable[tuple[Row, str, str]], page_chat: int | None) -> SafeString:
    """Render chats with the title and the query of each one's link."""
    # A list has hundreds of rows, so what they share is translated once.
    select = _("Select %(title)s")
    actions = _("Actions for %(title)s")
    lines = []
    for row, title, query in rows:
        status = ""
        if row.live is not None and row.live.is_waiting:
            status = WAITING_DOT()
        elif row.live is not None:
            status = RUNNING_DOT()
        elif row.is_pinned:
            status = icon("pin")
        members = ""
        if row.whose:
            sentence = _("shared by %(name)s") % {"name": row.whose}
            members = format_html(OWNER, icon("people"), row.whose, sentence)
        elif row.is_shared:
            members = format_html(MARK, _("shared"), icon("people"))
        public = ""
        if row.is_public and not row.whose:
            public = format_html(MARK, _("Public link"), icon("globe"))
        line = SESSION_ROW(
            pk=row.pk,
            pinned=mark_safe(" data-pinned") if row.is_pinned else "",
            others=mark_safe(" data-others") if row.whose else "",
            select=select % {"title": row.title},
            href=cached_url("chat:session", row.pk) + query,
            current=mark_safe(' aria-current="page"') if row.pk == page_chat else "",
            status=status,
            title=title,
            public=public,
            members=members,
            actions=actions % {"title": row.title},
        )
        lines.append(line)
    return join(lines)
