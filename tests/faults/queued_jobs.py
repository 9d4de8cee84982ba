"""Queues a document, an import of many chats or a scheduled payment, and prints its ID."""

import json
import sys

from tests.bench import accounts  # noqa: F401  (sets Django up)

from agents.knowledge import ingestion  # isort: skip
from agents.knowledge.files import save  # isort: skip
from agents.models import Collection, Schedule, ToolRegistration  # isort: skip
from agents.web.workflows import acceptance, versions  # isort: skip
from chat.transfer.imports import jobs  # isort: skip
from django.contrib.auth.models import User  # isort: skip
from django.core.files.uploadedfile import SimpleUploadedFile  # isort: skip
from django.utils import timezone  # isort: skip

CHATS = 1_500
HOSTILE_FILES = 6
# Each takes a second: every level is looked through for each one around it.
HOSTILE = b"<html>" + (b"<b>" * 290 + b"heron" + b"</b>" * 290) * 100


def queue_document(user: User, name: str) -> int:
    collection = Collection.objects.create(name=name, owner=user)
    stored = save(f"The heron nests in {name}.".encode(), name=f"{name}.txt", owner=user)
    return ingestion.add_file(collection, user, f"{name}.txt", stored).pk


def queue_hostile(user: User, name: str) -> str:
    """Queue files of another user that take long, then a small one; return the last two."""
    attacker, _ = User.objects.get_or_create(username="attacker")
    collection = Collection.objects.create(name=name, owner=attacker)
    stored = save(HOSTILE, name=f"{name}.html", owner=attacker)
    names = [f"{name}-{number}.html" for number in range(HOSTILE_FILES)]
    hostile = [ingestion.add_file(collection, attacker, each, stored) for each in names]
    return f"{hostile[-1].pk} {queue_document(user, name)}"


def queue_import(user: User, name: str) -> int:
    chats = [_chat(f"{name}-{number}") for number in range(CHATS)]
    file = SimpleUploadedFile("conversations.json", json.dumps(chats).encode())
    job = jobs.create(user, [file])
    jobs.work(job.pk)
    jobs.confirm(job)
    return job.pk


def queue_schedule(user: User, name: str) -> int:
    ToolRegistration.objects.filter(name="pay").update(approval="never")
    step = {"name": "Pay", "tool": "pay", "arguments": {"order": name}}
    text = json.dumps({"workflow": {"name": name, "steps": [step]}})
    workflow = versions.save(text, user)
    schedule = Schedule.objects.create(
        workflow=workflow, user=user, cron="0 0 1 1 *", next_at=timezone.now()
    )
    acceptance.update_acceptance(schedule, user)
    return schedule.pk


def _chat(id: str) -> dict:
    time = "2026-11-01T10:00:00Z"
    message = {"uuid": f"{id}-1", "sender": "human", "text": "Herons?", "created_at": time}
    return {"uuid": id, "name": id, "created_at": time, "chat_messages": [message]}


if __name__ == "__main__":
    queues = {
        "document": queue_document,
        "hostile": queue_hostile,
        "import": queue_import,
        "schedule": queue_schedule,
    }
    queue = queues[sys.argv[1]]
    sys.stdout.write(str(queue(User.objects.get(username="demo"), sys.argv[2])))
