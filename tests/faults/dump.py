"""All that a server has kept, as a line of JSON for each line that is read.

Read the way the product itself reads it, by a process that stays: starting one is slow.
"""

import json
import sys

from tests.bench import accounts  # noqa: F401  (sets Django up)

from agents import trace  # isort: skip
from agents.models import AgentStep, Approval, Run, RunEvent  # isort: skip
from chat import sessions  # isort: skip
from chat.models import ChatSession, Message  # isort: skip
from django.db import connections  # isort: skip

MESSAGE = ("pk", "session_id", "author_id", "client_id", "text", "run_id")
RUN = ("pk", "topic", "status", "stopped_reason", "answer", "detail", "advice", "takeovers")
EVENT = ("run_id", "seq", "type", "data")
STEP = ("run_id", "number", "kind", "status", "action", "observation", "ended_at")
APPROVAL = ("pk", "run_id", "step", "verdict", "why", "tool", "arguments", "digest")


def dump() -> dict:
    return {
        "messages": list(Message.objects.order_by("pk").values(*MESSAGE)),
        "runs": list(Run.objects.order_by("pk").values(*RUN)),
        "events": list(RunEvent.objects.order_by("run_id", "seq").values(*EVENT)),
        "steps": list(AgentStep.objects.order_by("run_id", "number").values(*STEP)),
        "approvals": list(Approval.objects.order_by("pk").values(*APPROVAL)),
        "transcripts": [trace.transcript(run) for run in Run.objects.order_by("pk")],
        "next": [sessions.history(chat) for chat in ChatSession.objects.order_by("pk")],
    }


if __name__ == "__main__":
    for _line in sys.stdin:
        sys.stdout.write(json.dumps(dump(), default=str) + "\n")
        sys.stdout.flush()
        connections.close_all()  # the database may be another one next time
