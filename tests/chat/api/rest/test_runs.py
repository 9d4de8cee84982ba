"""Runs, events and approvals over REST."""

import asyncio
import json
import time

import pytest
from django.contrib.auth.models import Permission, User

from agents.engine.testing import ContextTool, Says
from agents.models import Agent, Approval, AuditEntry, Run
from agents.review.models import Rating, Review
from tests.chat.api.rest.conftest import body_of, finished, sse_events
from tests.conftest import run_question, until
from tests.runs.test_elicitation import QUESTION

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
async def answered(person):
    return await run_question("What is 6 * 7?", user=person)


@pytest.fixture
def asks_first(agent):
    """Let every call of the agent wait for approval."""
    Agent.objects.update(auto_execute_tools=False)


@pytest.fixture
def reviewer(stranger):
    stranger.user_permissions.add(Permission.objects.get(codename="review_runs"))
    return User.objects.get(pk=stranger.pk)


async def test_a_run_without_a_chat(program):
    history = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello. What shall I compute?"},
    ]

    started = await program.post("/runs", {"text": "What is 6 * 7?", "history": history})
    run = started.json()
    ended = await finished(program, run["id"])
    steps = (await program.get(f"/runs/{run['id']}/steps")).json()["items"]

    assert started.status_code == 201
    assert run["status"] == "running"
    assert "answer" not in run
    assert "42" in ended["answer"]
    assert ended["stopped_reason"] == "completed"
    assert ended["started_at"].endswith("Z")
    assert "chat" not in ended
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert "calculator" in {step["action"] for step in steps}
    saved = await Run.objects.aget(pk=run["id"])
    assert [message["content"] for message in saved.history] == ["Hello", history[1]["content"]]


async def test_options_are_checked_like_those_of_a_chat(program):
    body = {"text": "6 * 7", "options": {"model": "secret/model"}}

    response = await program.post("/runs", body)

    assert response.status_code in {201, 422}
    if response.status_code == 201:  # the agent allows no choice, so its own model answers
        assert (await finished(program, response.json()["id"]))["model"] != "secret/model"


async def test_runs_are_found_by_the_filter_language(program, person, agent):
    for status in ("completed", "failed", "failed"):
        await Run.objects.acreate(
            user=person,
            agent=agent,
            agent_name="helper",
            topic=status,
            query="?",
            status=status,
        )

    failed = (await program.get("/runs?filter=status:failed&limit=1")).json()
    rest = await program.get(f"/runs?filter=status:failed&cursor={failed['next_cursor']}")
    invalid = await program.get("/runs?filter=status:sleepy")

    assert [run["status"] for run in failed["items"] + rest.json()["items"]] == ["failed"] * 2
    assert "next_cursor" not in rest.json()
    assert invalid.status_code == 422
    assert invalid.json()["code"] == "invalid_filter"


async def test_what_others_ran_needs_a_scope_and_is_masked(connect, reviewer, person):
    run = await run_question("Write to ana@example.com", user=person)
    own = await connect("read", user=reviewer)
    everyones = await connect("read", "read_all", user=reviewer)

    hidden = await own.get(f"/runs/{run.pk}")
    listed = (await own.get("/runs")).json()["items"]
    seen = (await everyones.get(f"/runs/{run.pk}")).json()
    pages = [
        await everyones.get(path)
        for path in ("/runs", *(f"/runs/{run.pk}/{part}" for part in ("steps", "events")))
    ]
    traces = [
        await body_of(await everyones.get(path))
        for path in ("/traces", f"/runs/{run.pk}/trace.json", f"/runs/{run.pk}/trace.md")
    ]

    assert hidden.status_code == 404
    assert listed == []
    assert seen["is_masked"] is True
    assert "‹email›" in seen["question"]
    for text in (*(page.content for page in pages), *traces):
        assert text
        assert b"ana@example.com" not in text
    views = AuditEntry.objects.filter(subject__contains=str(run.pk))
    actions = {entry.action async for entry in views}
    assert {"run.viewed", "run.exported"} <= actions


async def test_events_come_as_pages_without_gaps(program, answered):
    path = f"/runs/{answered.pk}/events"
    seqs = []
    after = 0
    while True:
        page = (await program.get(f"{path}?after={after}&limit=3")).json()
        if not page["items"]:
            break
        seqs += [event["seq"] for event in page["items"]]
        assert page["last"] == seqs[-1]
        after = page["last"]

    assert seqs == list(range(1, len(seqs) + 1))
    assert page["is_live"] is False
    assert len(seqs) == await answered.events.acount()


async def test_a_stream_continues_after_the_last_event_id(program, model, connect):
    """What came while nobody listened is neither missed nor doubled."""
    started = (await program.post("/runs", {"text": "Well?"})).json()
    path = f"/runs/{started['id']}/events"
    stream = await program.get(path, accept="text/event-stream")
    first = []
    async for piece in stream.streaming_content:
        lines = piece.decode().splitlines()
        first += [int(line[4:]) for line in lines if line.startswith("id: ")]
        if len(first) >= 3:
            break
    stream.close()
    model.let_go.set()
    await finished(program, started["id"])

    again = await program.get(path, accept="text/event-stream", last_event_id=str(first[-1]))
    rest = await sse_events(again)

    assert again.headers["Content-Type"] == "text/event-stream"
    seqs = first + [seq for seq, _type in rest]
    assert seqs == list(range(1, len(seqs) + 1))
    assert rest[-1][1] == "run_finished"


async def test_a_live_stream_ends_with_the_run(program, model):
    started = (await program.post("/runs", {"text": "Well?"})).json()
    stream = await program.get(
        f"/runs/{started['id']}/events", accept="text/event-stream; q=1, */*"
    )
    reading = asyncio.create_task(sse_events(stream))
    await asyncio.sleep(0.1)
    model.let_go.set()

    events = await asyncio.wait_for(reading, 20)

    assert [seq for seq, _type in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "run_finished"


async def test_waiting_has_a_deadline(program, model):
    run = (await program.post("/runs", {"text": "Well?"})).json()
    began = time.monotonic()

    live = (await program.get(f"/runs/{run['id']}/wait?seconds=1")).json()
    took = time.monotonic() - began
    model.let_go.set()
    ended = (await program.get(f"/runs/{run['id']}/wait?seconds=20")).json()

    assert live["status"] == "running"
    assert took > 0.9
    assert ended["status"] == "completed"
    assert ended["answer"]


async def test_a_run_is_stopped(program, model, connect, stranger):
    run = (await program.post("/runs", {"text": "Well?"})).json()
    other = await connect(user=stranger)

    assert (await other.post(f"/runs/{run['id']}/stop")).status_code == 404
    assert (await program.post(f"/runs/{run['id']}/stop")).status_code == 204
    ended = await finished(program, run["id"])
    assert ended["status"] == "stopped"
    assert (await program.post(f"/runs/{run['id']}/stop")).status_code == 204


async def test_a_call_is_approved_once(program, asks_first):
    run = (await program.post("/runs", {"text": "What is 6 * 7?"})).json()
    waiting = await finished(program, run["id"])
    [asked] = (await program.get("/approvals")).json()["items"]
    path = f"/approvals/{asked['id']}"

    old = await program.post(f"{path}/decision", {"verdict": "approve", "digest": "old"})
    decided = await program.post(
        f"{path}/decision", {"verdict": "approve", "digest": asked["digest"]}
    )
    twice = await program.post(
        f"{path}/decision", {"verdict": "reject", "digest": asked["digest"]}
    )
    ended = await finished(program, run["id"])

    assert waiting["status"] == "waiting"
    assert asked["run"] == run["id"]
    assert isinstance(asked["arguments"], dict)
    assert old.status_code == 409
    assert decided.json()["run"] == run["id"]
    assert twice.status_code == 409
    assert twice.json()["code"] == "decision_rejected"
    assert ended["status"] == "completed"
    assert (await program.get(path)).status_code == 404


async def test_a_call_is_rejected_with_a_reason(program, asks_first):
    run = (await program.post("/runs", {"text": "What is 6 * 7?"})).json()
    await finished(program, run["id"])
    [asked] = (await program.get("/approvals")).json()["items"]

    body = {"verdict": "reject", "digest": asked["digest"], "reason": "Too dear."}
    response = await program.post(f"/approvals/{asked['id']}/decision", body)
    await finished(program, run["id"])

    assert response.status_code == 200
    saved = await Approval.objects.aget(pk=asked["id"])
    assert saved.verdict == "rejected"
    assert saved.reason == "Too dear."


async def test_an_answer_is_rated(program, answered, connect, stranger):
    path = f"/runs/{answered.pk}/rating"
    body = {"rating": "bad", "reason": "wrong", "comment": "It is 43.", "asks_reviewer": True}

    rated = await program.call("put", path, body)
    invalid = await program.call("put", path, {"rating": "bad", "reason": "ugly"})
    other = await (await connect(user=stranger)).call("put", path, {"rating": "good"})
    deleted = await program.call("delete", path)

    assert rated.json() == {"rating": "bad", "reason": "wrong", "comment": "It is 43."}
    assert invalid.status_code == 422
    assert other.status_code == 404
    assert deleted.status_code == 204
    assert await Rating.objects.acount() == 0
    assert await Review.objects.filter(run=answered).aexists()


async def test_traces_are_exported_as_lines(program, answered, person):
    await run_question("What is 6 * 8?", user=person, topic="chat.2")

    response = await program.get("/traces?limit=1")
    text = (await body_of(response)).decode()
    cursor = response.headers["Next-Cursor"]
    rest = await program.get(f"/traces?cursor={cursor}")
    [second] = (await body_of(rest)).splitlines()

    [line] = text.splitlines()
    assert json.loads(line)["schema"] == "ashiato.trace/1"
    assert json.loads(second)["run"]["id"] == answered.pk
    assert "Next-Cursor" not in rest.headers


async def test_a_question_of_a_running_call_is_answered(program, use_tool, scripted):
    """By field name; what a page's form would refuse is refused."""

    async def work(context):
        answer = await context.ask(QUESTION)
        return json.dumps(dict(answer.content))

    use_tool(ContextTool(work, "calculator"))
    scripted(Says.call("calculator", input="1"), Says(answer="Done."))
    run = (await program.post("/runs", {"text": "Ask me."})).json()
    async with asyncio.timeout(20):
        await until(await Run.objects.aget(pk=run["id"]), "approval_requested")
    [asked] = (await program.get("/approvals")).json()["items"]
    path = f"/approvals/{asked['id']}/decision"
    body = {"verdict": "approve", "digest": asked["digest"]}

    text = await program.post(path, body | {"answer": "me"})
    wrong = await program.post(path, body | {"answer": {"email": "me", "count": 4}})
    right = await program.post(
        path, body | {"answer": {"email": "ana@example.com", "count": 4, "agree": True}}
    )
    await finished(program, run["id"])

    assert asked["why"] == "elicitation"
    assert text.status_code == wrong.status_code == 422
    assert wrong.json()["code"] == "invalid_answer"
    assert right.status_code == 200
    saved = await Approval.objects.aget(pk=asked["id"])
    assert json.loads(saved.new_arguments) == {
        "email": "ana@example.com",
        "count": 4,
        "agree": True,
    }
