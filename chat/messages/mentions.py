"""`@agent` at the start of a message: another agent answers it, once.

The mention is removed from the text, because it isn't part of the question. Elsewhere in a
message, @ means nothing, and a message that starts with a space is sent as it is. So is one of
a visitor, whom one agent answers.
"""

import re
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.access.visitors import is_visitor
from agents.db.compiled_queries import compiled_query
from agents.engine.text import fold
from agents.models import Agent
from chat.errors import MessageRejected
from chat.models import Message

SIGNS = ("@", "＠")
MAX_NAME_CHARS = 64
# A name goes on with these, so "@Ann" isn't a mention in "@Anna".
NAME_CHARACTER = re.compile(r"[\w-]")
# After an unknown name, only a space or the end: "@media{", "@app.route" and "@x\n" are code.
UNKNOWN_NAME = re.compile(r"([^\W_][\w-]*)(?:[ \u3000]|$)")
SEPARATORS = " \t\n\u3000,:;、。：；，"


@dataclass(frozen=True, slots=True)
class Mention:
    """The agent that answers once, and what it is asked."""

    agent: str
    text: str


def parse(text: str, user: User) -> Mention | None:
    """Return the mention a text starts with; raise MessageRejected if there's no such agent."""
    if not text.startswith(SIGNS) or is_visitor(user.pk):
        return None
    body = text[1:]
    names = {fold(name): name for (name,) in _agent_names(user.pk)}
    for end in range(min(len(body), MAX_NAME_CHARS), 0, -1):
        name = names.get(fold(body[:end]))
        if name is not None and not NAME_CHARACTER.match(body, end):
            question = body[end:].lstrip(SEPARATORS)
            if not question.strip():
                raise MessageRejected(_("Enter a message after @%(name)s.") % {"name": name})
            return Mention(agent=name, text=question)
    if (unknown := UNKNOWN_NAME.match(body)) is not None:
        raise MessageRejected(
            _(
                "There's no agent “%(name)s” that you can use. Choose one from the list "
                "after @, or start the message with a space to send it as is."
            )
            % {"name": unknown[1][:MAX_NAME_CHARS]}
        )
    return None


def is_mention(message: int | None) -> bool:
    """Whether a message was one; what is sent instead of it is one, too."""
    return message is not None and Message.objects.filter(pk=message, is_mention=True).exists()


def restore(text: str, agent: str) -> str:
    """Return a text as it was typed, with its mention."""
    return f"@{agent} {text}"


@compiled_query
def _agent_names(user: int) -> QuerySet[Agent, tuple[str]]:
    return Agent.objects.open_to(user).filter(enabled=True).values_list("name")
