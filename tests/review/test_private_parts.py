"""What an agent was told about who asked is for them, not for other members of the chat."""

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from agents.models import AgentStep, RunEvent
from chat.models import ChatSession, Message
from chat.sharing import members
from tests.conftest import as_user

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "My heart is ill"
INSTRUCTIONS = (
    f"Be kind.\n\n<user_profile>\nAbout: {SECRET}\n</user_profile>"
    f'\n\n<user_memory>\n- "{SECRET}"\n</user_memory>'
)
USED = {"kind": "memory", "used": [{"id": 1, "text": SECRET, "why": "words", "matched": []}]}
STEP = "/traces/{run}/steps/2/"
PATHS = (
    *("/chat/{chat}/", "/chat/{chat}/export/json/", "/traces/{run}/", "/traces/{run}/steps/"),
    *(f"{STEP}?tab={tab}" for tab in ("result", "request", "delta", "raw")),
    *(f"{STEP}{name}/" for name in ("request", "result", "raw")),
    *("/traces/{run}/export.json", "/traces/{run}/export.md", "/traces/{run}/replay/"),
    *("/traces/{run}/replay/scene/?after=0", "/api/runs/{run}/events/"),
)


@pytest.fixture
def chat(person, stranger):
    found = ChatSession.objects.create(user=person, title="Tea")
    members.add_member(found, stranger.username, "read")
    return found


@pytest.fixture
def run(personal_run, person, chat):
    """A run with two steps whose prompt has the asker's profile and memory."""
    run, now = personal_run, timezone.now()
    run.steps.all().delete()
    run.events.all().delete()
    run.topic = chat.topic
    run.save()
    Message.objects.create(session=chat, author=person, run=run, text="Hi", client_id="a")
    told = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "Hi"}]
    requests = [{"kept": 0, "messages": told}, {"kept": 2, "messages": []}]
    events = [("run_started", {"query": "Hi", "instructions": INSTRUCTIONS, "tools": []})]
    for number, request in enumerate(requests, 1):
        about = {"kind": "answer", "status": "done", "agent_name": "clerk", "started_at": now}
        AgentStep.objects.create(
            run=run, number=number, request=request, notes=[USED], first_seq=2, **about
        )
        begun = {"step": number, "turn": 1, "kind": "answer", "request": request}
        events.append(("step_started", begun))
    events += [("status", {"step": 2, **USED})]
    for seq, (kind, data) in enumerate(events, 1):
        RunEvent.objects.create(run=run, seq=seq, type=kind, data=data, agent="clerk", time=now)
    return run


def content(client, path, run, chat):
    answer = client.get(path.format(run=run.pk, chat=chat.pk))
    assert answer.status_code == 200, path
    if getattr(answer, "is_async", False):
        return async_to_sync(joined)(answer)
    return b"".join(answer).decode()


async def joined(answer):
    return b"".join([part async for part in answer]).decode()


def test_a_member_of_the_chat_reads_nothing_about_who_asked(run, chat, stranger, person):
    other, own = as_user(stranger), as_user(person)

    assert [path for path in PATHS if SECRET in content(other, path, run, chat)] == []
    assert SECRET in content(own, f"{STEP}?tab=request", run, chat)


def test_a_reviewer_reads_it_only_after_unmasking(run, chat, auditor):
    client, path = as_user(auditor), f"{STEP}?tab=request"
    assert SECRET not in content(client, path, run, chat)

    client.post(f"/traces/{run.pk}/unmask/", {"reason": "A complaint about this answer"})

    assert SECRET in content(client, path, run, chat)
