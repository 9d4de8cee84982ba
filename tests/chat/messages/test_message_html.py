"""A message's HTML: its text, who wrote it and what its user can do with it."""

import pytest
from django.utils import timezone

from agents.models import Run
from agents.web.presentation import RunView
from chat.fragments import MessageView, render_message
from chat.models import ChatSession, Message

pytestmark = pytest.mark.django_db

HOSTILE = "\"'><img src=x onerror=alert(1)>&amp;{pk} %(pk)s"


def message_view(author, text, **options):
    run = Run(pk=7, agent_name=HOSTILE, model=HOSTILE, started_at=timezone.now())
    columns = {"author": author, "text": text, "client_id": HOSTILE, "run": run}
    message = Message(pk=3, created_at=timezone.now(), **columns)
    message.session = ChatSession(pk=5, user=author)
    return MessageView(message, RunView(run, until=0), **options)


def test_a_message_escapes_its_text(person):
    html = render_message(message_view(person, HOSTILE, may_write=True), person)

    assert "<img" not in html
    assert "{pk} %(pk)s" in html
    assert 'id="message-3"' in html
    assert 'id="run-7"' in html


def test_only_its_author_can_edit_a_message(person, django_user_model):
    reader = django_user_model.objects.create(username="eve")
    message = message_view(person, "Why?", may_write=True)

    assert "data-edit>" in render_message(message, person)
    assert "data-edit>" not in render_message(message, reader)


@pytest.mark.parametrize(("text", "is_long"), [("x" * 240, False), ("x" * 241, True)])
def test_a_long_question_can_be_scrolled_by_keyboard(text, is_long, person):
    html = render_message(message_view(person, text), person)

    assert ('<p tabindex="0">' in html) == is_long
