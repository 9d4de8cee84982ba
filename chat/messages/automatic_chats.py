"""Chats that schedules start for their users."""

from uuid import uuid4

from django.contrib.auth.models import User

from agents import runs
from agents.access import masking
from agents.db.fast_writes import insert
from agents.engine.state import Message as HistoryMessage
from agents.metering import budgets
from agents.models import Agent, Run
from chat.models import ChatSession, Message
from chat.sessions import titles


def start(user: User, agent: Agent, question: str, history: list[HistoryMessage]) -> Run:
    """Create a chat with this question, and the run that answers it, ready to be launched."""
    budgets.count_message(user)
    title = titles.distinct(user.pk, titles.first_title(agent, question))
    session = ChatSession.objects.create(user=user, title=title, options={})
    run = runs.prepare(
        query=question, topic=session.topic, user=user, agent=agent, history=history
    )
    message = Message(
        session=session,
        author=user,
        run=run,
        text=masking.mask_for_storage(agent, question),
        client_id=uuid4().hex,
        agent_name="",
    )
    insert(message)
    return run
