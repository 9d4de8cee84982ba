"""A new message equals what the template renders."""

import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from agents.models import Run
from agents.web.presentation import RunView
from chat.fragments import MessageView, new_message
from chat.models import ChatSession, Message

pytestmark = pytest.mark.django_db

TEXTS = ["Why?", "<b>100%</b> \ue001 %(run)s", "x" * 240, "x" * 241, "\n" * 13]


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("chosen", [{}, {"effort": "high"}, {"temperature": 0.25}])
def test_the_cached_message_equals_its_template(language, text, chosen, person):
    about = {"agent_name": "critic & co", "model": "openai/100%", "max_steps": 8}
    run = Run(pk=7, overrides=chosen, **about)
    about = {"author": person, "text": text, "client_id": 'a"\ue000', "run": run}
    message = Message(pk=3, created_at=timezone.now(), **about)
    view = RunView(run, until=0)
    message.session = ChatSession(pk=5, user=person)
    context = {"message": MessageView(message, view, may_write=True), "user": person}

    with translation.override(language):
        drawn = new_message.render(message, view)
        assert drawn == render_to_string("chat/messages/_message.html", context)

    assert 'id="message-3"' in drawn
    assert 'id="run-7"' in drawn
