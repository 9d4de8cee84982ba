"""Creates a run that was stopped between calls, by `manage.py shell`."""

SCRIPT = """
from django.contrib.auth import get_user_model
from agents.runs import event_store
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.termination import StopReason
from agents.models import Agent, Run
from chat.models import ChatSession, Message

user = get_user_model().objects.get(username="demo")
chat = ChatSession.objects.create(user=user, title="Letters")
run = Run.objects.create(
    topic=chat.topic, query="Write to all three.", agent=Agent.objects.first(), user=user,
    agent_name="helper", model="demo", max_steps=10,
)
Message.objects.create(
    session=chat, author=user, text=run.query, run=run, client_id=f"letters-{{run.pk}}"
)
emit, now = EventFactory("helper"), run.started_at.isoformat()
calls = [
    {{
        "id": to,
        "function": {{"name": "send_letter", "arguments": '{{"to": "%s@example.org"}}' % to}},
        "effect": "at_most_once",
    }}
    for to in ("ada", "ben", "eve")
]
start = {{"turn": 1, "started": now, "effect": "at_most_once"}}
events = [
    emit(EventType.RUN_STARTED, query=run.query, path=["helper"]),
    emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={{}}),
    emit(EventType.THOUGHT, step=1, content="Three letters."),
    emit(EventType.STEP, step=1, kind="thought", status="done", thought="Three.", calls=calls),
    emit(EventType.TOOL_CALL, step=2, id="ada", function=calls[0]["function"], **start),
    emit(EventType.STEP, step=2, kind="tool", status="done", observation="Sent."),
]
if {is_stopped}:
    function = calls[1]["function"]
    events.append(emit(EventType.TOOL_CALL, step=3, id="ben", function=function, **start))
    event_store.save([(run.pk, event) for event in events])
    event_store.close(run.pk, event_store.Ending(StopReason.CANCELLED, is_sure=False))
else:
    events[3].data["calls"] = calls[:1]
    events.append(emit(EventType.RUN_FINISHED, answer="It is sent.", stopped_reason="completed",
                       detail="", advice="", turns=1, tool_calls=1))
    event_store.save([(run.pk, event) for event in events])
print("pks:", chat.pk, run.pk)
"""


def letters(server, *, is_stopped: bool) -> tuple[int, int]:
    """Return the chat and the run, which sent a letter and, if stopped, perhaps another."""
    said = server.manage("shell", "-c", SCRIPT.format(is_stopped=is_stopped))
    chat, run = said.rsplit("pks:", 1)[1].split()
    return int(chat), int(run)
