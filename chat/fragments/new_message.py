"""Renders a new message from a template cached per agent."""

from datetime import UTC, datetime
from functools import lru_cache

from django.contrib.auth import get_user_model
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models import Run
from agents.web.presentation import RunView
from agents.web.presentation.dates import timestamp
from agents.web.presentation.formatting import is_scrollable
from agents.web.presentation.template_cache import (
    RUN_PLACEHOLDER,
    Tuning,
    to_format_string,
    tuning_overrides,
)
from chat.models import ChatSession, Message

MAX_UNSCROLLED_CHARS = 240  # longer questions may need scrolling
MAX_CACHED_TEMPLATES = 256
MESSAGE_PLACEHOLDER, SESSION_PLACEHOLDER = 792_468_135, 681_357_924
TEXT_PLACEHOLDER, ID_PLACEHOLDER = "\ue000", "\ue001"
TIME_PLACEHOLDER = datetime(1999, 8, 7, 6, 5, 4, tzinfo=UTC)


def render(message: Message, view: RunView) -> SafeString:
    """Render the user's own message above a run without events."""
    run = view.run
    is_long = is_scrollable(message.text, MAX_UNSCROLLED_CHARS)
    template = _cached_template(
        get_language(), is_long, run.agent_name, run.model, run.max_steps, run.tuning
    )
    values = {
        "message": message.pk,
        "session": message.session_id,
        "run": view.pk,
        "client_id": escape(message.client_id),
        "text": escape(message.text),
    }
    return mark_safe(template % (values | _time_fields(message.created_at)))


@lru_cache(MAX_CACHED_TEMPLATES)
def _cached_template(
    language: str, is_long: bool, agent: str, model: str, max_steps: int, tuning: Tuning
) -> str:
    text = TEXT_PLACEHOLDER * (MAX_UNSCROLLED_CHARS + 1 if is_long else 1)
    person = get_user_model()(pk=1)
    message = Message(
        pk=MESSAGE_PLACEHOLDER, author=person, client_id=ID_PLACEHOLDER, text=text
    )
    message.session = ChatSession(pk=SESSION_PLACEHOLDER, user=person)
    message.created_at = TIME_PLACEHOLDER
    options = {"agent_name": agent, "model": model, "max_steps": max_steps}
    run = Run(pk=RUN_PLACEHOLDER, overrides=tuning_overrides(tuning), **options)
    message.run = run
    vars(message).update(view=RunView(run, until=0), may_write=True)
    html = render_to_string("chat/messages/_message.html", {"message": message, "user": person})
    placeholders = {
        "message": str(MESSAGE_PLACEHOLDER),
        "session": str(SESSION_PLACEHOLDER),
        "client_id": ID_PLACEHOLDER,
        "text": text,
    }
    return to_format_string(html, **placeholders, **_time_fields(TIME_PLACEHOLDER))


def _time_fields(moment: datetime) -> dict[str, str]:
    return {"moment": timestamp(moment, "clock")}
