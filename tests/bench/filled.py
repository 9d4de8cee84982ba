"""Generates years of use quickly: one answered question, copied many times."""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.db.models import Max, Model  # noqa: E402
from django.utils import timezone  # noqa: E402

from agents.models import Agent, AgentStep, Run, RunEvent  # noqa: E402
from chat.models import ChatSession, Message  # noqa: E402
from tests.bench.accounts import signed_in  # noqa: E402

PEOPLE = 50
ANSWER = "It comes to **435**, which is an eighth of the whole. " * 8
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"


@transaction.atomic
def long_session(messages: int) -> dict:
    """Create a user with one chat of this many messages."""
    session = _create_answered_chat(_person(f"long-{messages}"), f"{messages} messages")
    _copy_chat(session, messages - 1, {})
    return _page_facts(session)


@transaction.atomic
def many_sessions(count: int) -> dict:
    """Create this many chats, a tenth of them of one user."""
    people = [_person(f"person-{number}").pk for number in range(PEOPLE)]
    session = _create_answered_chat(
        get_user_model().objects.get(pk=people[0]), "The first question"
    )
    last = _last(ChatSession)
    owner = f"CASE WHEN i % 10 = 0 THEN {people[0]} ELSE {people[1]} + i % {PEOPLE - 1} END"
    at = "strftime('%Y-%m-%d %H:%M:%f', updated_at, '-' || i || ' seconds')"
    more = count - ChatSession.objects.count()
    of_each = {"user_id": owner, "title": "'Question ' || i", "updated_at": at}
    _copy(ChatSession, session.pk, more, {"id": f"{last} + i", **of_each})
    _copy_chat(session, more, {"session": f"{last} + i", "person": owner})
    return _page_facts(session)


def _copy_chat(session: ChatSession, count: int, places: dict[str, str]) -> None:
    """Copy a chat's question, there or into new chats."""
    message = session.messages.get()
    run = f"{_last(Run)} + i"
    in_session = places.get("session", str(session.pk))
    person = places.get("person", str(session.user_id))
    mine = {"id": run, "user_id": person, "topic": f"'chat.' || ({in_session})"}
    _copy(Run, message.run_id, count, mine)
    said = {"session_id": in_session, "author_id": person, "run_id": run}
    said |= {"id": f"{_last(Message)} + i", "client_id": f"'copy ' || ({run})"}
    _copy(Message, message.pk, count, said)
    for model in (AgentStep, RunEvent):
        for row in model.objects.filter(run=message.run_id):
            _copy(model, row.pk, count, {"id": f"{_last(model)} + i", "run_id": run})


def _copy(model: type[Model], row: int, count: int, changes: dict[str, str]) -> None:
    table = model._meta.db_table
    columns = [field.column for field in model._meta.concrete_fields]
    values = ", ".join(changes.get(column, f'"{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    numbers = NUMBERS.format(count=count)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{numbers} INSERT INTO {table} ({names}) "
            f"SELECT {values} FROM {table}, n WHERE id = {row} AND {count} > 0"
        )


def _last(model: type[Model]) -> int:
    return model.objects.aggregate(last=Max("pk"))["last"] or 0


def _person(name: str):
    return get_user_model().objects.get_or_create(username=name)[0]


def _create_answered_chat(person, title: str) -> ChatSession:
    """Create a chat with one answered question."""
    session = ChatSession.objects.create(user=person, title=title)
    agent, now = Agent.objects.get(is_default=True), timezone.now()
    run = Run.objects.create(
        user=person,
        topic=session.topic,
        agent=agent,
        agent_name=agent.name,
        model="demo",
        query="What is 12.5% of 3480?",
        answer=ANSWER,
        status=Run.Status.COMPLETED,
        ended_at=now,
    )
    said = {"text": run.query, "client_id": f"first {run.pk}"}
    Message.objects.create(session=session, author=person, run=run, **said)
    step = {"run": run, "status": "done", "started_at": now, "ended_at": now}
    call = {"call_id": "call_1", "action": "calculator", "action_input": {"expression": "6*7"}}
    AgentStep.objects.create(number=1, turn=1, kind="tool", observation="42", **step, **call)
    AgentStep.objects.create(number=2, turn=2, kind="answer", **step)
    event = {"run": run, "type": "delta", "agent": agent.name, "time": now}
    RunEvent.objects.create(seq=1, data={"content": ANSWER, "step": 2}, **event)
    return session


def _page_facts(session: ChatSession) -> dict:
    last = session.messages.last()
    return {"cookie": signed_in(session.user), "chat": session.pk, "last": last.pk}


if __name__ == "__main__":
    fill = {"messages": long_session, "sessions": many_sessions}[sys.argv[1]]
    print(json.dumps(fill(int(sys.argv[2]))))
