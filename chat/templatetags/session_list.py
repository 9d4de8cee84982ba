"""The sessions of a person, as they are listed."""

from functools import cache

from django import template
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models import Run
from agents.templatetags.ashiato import A_NUMBER
from chat.models import ChatSession

register = template.Library()

# Of no language, and so in no sentence around them.
A_TITLE, A_NAME = "\ue000", "\ue001"


@register.simple_tag
def session_row(row: ChatSession, here: int | None) -> SafeString:
    """One of a hundred, and all are alike but for the number and the title."""
    status = row.live.status if row.live else ""
    drawn = _drawn(get_language(), status, row.pk == here, bool(row.whose))
    drawn = drawn.replace(str(A_NUMBER), str(row.pk)).replace(A_NAME, escape(row.whose))
    return mark_safe(drawn.replace(A_TITLE, escape(row.title)))


@cache
def _drawn(language: str, status: str, is_here: bool, is_others: bool) -> str:
    row = ChatSession(pk=A_NUMBER, title=A_TITLE)
    row.whose = A_NAME if is_others else ""
    row.live = Run(status=status) if status else None
    about = {"row": row, "is_here": is_here}
    return render_to_string("chat/session.html#session_row", about)
