"""A question that was asked just now: drawn once for each agent, and filled in."""

from datetime import UTC, datetime
from functools import lru_cache

from django.contrib.auth import get_user_model
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from agents.models import Run
from agents.web.presentation import RunView
from agents.web.presentation.formatting import scrolls
from agents.web.presentation.template_cache import A_NUMBER, form
from chat.models import Message

MOST_SEEN = 240  # of a question: what is longer may have to be scrolled
MOST_FORMS = 256
A_MESSAGE = 792_468_135
A_TEXT, AN_ID = "\ue000", "\ue001"
A_MOMENT = datetime(1999, 8, 7, 6, 5, 4, tzinfo=UTC)


def drawn(message: Message, view: RunView) -> SafeString:
    """What whoever looks has asked, above a run of which nothing was told yet."""
    run, is_long = view.run, scrolls(message.text, MOST_SEEN)
    question = _form(get_language(), is_long, run.agent_name, run.model, run.max_steps)
    about = {
        "message": message.pk,
        "run": view.pk,
        "client_id": escape(message.client_id),
        "text": escape(message.text),
    }
    return mark_safe(question % (about | _times(message.created_at)))


@lru_cache(MOST_FORMS)
def _form(language: str, is_long: bool, agent: str, model: str, max_steps: int) -> str:
    text = A_TEXT * (MOST_SEEN + 1 if is_long else 1)
    person = get_user_model()(pk=1)
    message = Message(pk=A_MESSAGE, author=person, client_id=AN_ID, text=text)
    message.created_at = A_MOMENT
    message.run = Run(pk=A_NUMBER, agent_name=agent, model=model, max_steps=max_steps)
    message.view = RunView(message.run, until=0)
    html = render_to_string("chat/session.html#message", {"message": message, "user": person})
    places = {"message": str(A_MESSAGE), "client_id": AN_ID, "text": text}
    return form(html, **places, **_times(A_MOMENT))


def _times(moment: datetime) -> dict[str, str]:
    at = timezone.localtime(moment)
    return {"moment": at.isoformat(), "clock": f"{at:%H:%M}"}
