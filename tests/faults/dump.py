"""Prints what a server has saved of some or all chats, as JSON: a line per input line.

It reads like the product itself, in a lasting process, because starting one is slow.
"""

import json
import sys

from tests.bench import accounts  # noqa: F401  (sets Django up)

from agents.runs import event_store  # isort: skip
from agents.models import AgentStep, Approval, Run, RunEvent  # isort: skip
from chat.messages import run_factory  # isort: skip
from chat.models import ChatSession, Message  # isort: skip
from django.db import connections  # isort: skip

MESSAGE = ("pk", "session_id", "author_id", "client_id", "text", "run_id")
RUN = ("pk", "topic", "status", "stopped_reason", "answer", "detail", "advice", "takeovers")
RUN += ("seconds",)
EVENT = ("run_id", "seq", "type", "data")
STEP = ("run_id", "number", "kind", "status", "action", "observation", "ended_at")
STEP += ("started_at",)
APPROVAL = ("pk", "run_id", "step", "verdict", "why", "tool", "arguments", "digest")


def dump(pks: list[int]) -> dict:
    chats = ChatSession.objects.filter(pk__in=pks) if pks else ChatSession.objects.all()
    runs = Run.objects.filter(topic__in=[chat.topic for chat in chats]).order_by("pk")
    messages = Message.objects.filter(session__in=chats)
    return {
        "messages": list(messages.order_by("pk").values(*MESSAGE)),
        "runs": list(runs.values(*RUN)),
        "events": list(_of(RunEvent, runs, "seq").values(*EVENT)),
        "steps": list(_of(AgentStep, runs, "number").values(*STEP)),
        "approvals": list(_of(Approval, runs, "pk").values(*APPROVAL)),
        "told": [*map(event_store.transcript, runs), *map(run_factory.history, chats)],
    }


def _of(model, runs, order: str):
    return model.objects.filter(run__in=runs).order_by("run_id", order)


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(dump(json.loads(line)), default=str) + "\n")
        sys.stdout.flush()
        connections.close_all()  # the database may be another one next time
