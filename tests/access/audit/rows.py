"""Finished chats with everything related."""

from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from agents.models import AgentStep, Run, RunEvent
from chat.models import ChatSession, Message


def conversation(user, *questions, days=0):
    chat = ChatSession.objects.create(user=user, title=questions[0] if questions else "Empty")
    for question in questions:
        create_question(chat, user, question)
    then = timezone.now() - timedelta(days=days)
    ChatSession.objects.filter(pk=chat.pk).update(updated_at=then)
    Run.objects.filter(topic=chat.topic).update(started_at=then)
    return chat


def create_question(chat, user, question, history=()):
    run = create_ended_run(user, question, chat.topic, history)
    about = {"session": chat, "author": user, "run": run, "client_id": uuid4().hex}
    about["parent"] = chat.messages.posted().last()
    Message.objects.create(text=question, **about)
    return run


def create_ended_run(user, question, topic, history=(), **columns):
    about = {"topic": topic, "agent_name": "helper", "answer": f"Answer to {question}"}
    run = Run.objects.create(
        user=user, query=question, status="completed", history=list(history), **about, **columns
    )
    sent = {"messages": [{"role": "user", "content": question}, *history]}
    now = timezone.now()
    AgentStep.objects.create(run=run, number=1, kind="answer", started_at=now, request=sent)
    events = [("step_started", {"step": 1, "request": sent}), ("run_finished", {"answer": "x"})]
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=seq, type=type, agent="helper", time=now, data=data)
        for seq, (type, data) in enumerate(events, start=1)
    )
    return run
