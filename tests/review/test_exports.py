"""Exports of a run: complete, masked like its page, and in the documented format."""

import json
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone
from markdown_it import MarkdownIt

from agents.engine.testing import Says
from agents.models import AgentStep, AuditEntry, Disconnection, Run, RunEvent
from agents.review import exports
from tests.conftest import as_async_user, run_question
from tests.review.conftest import MAIL, PERSONAL

pytestmark = pytest.mark.django_db(transaction=True)

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = json.loads((DOCS / "trace-schema.json").read_text())


async def fetch(user, path):
    client = await as_async_user(user)
    answer = await client.get(path)
    assert answer.status_code == 200
    pieces = [piece async for piece in answer.streaming_content]
    return answer, b"".join(pieces).decode(), len(pieces)


def validate_export(text):
    trace = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(trace, SCHEMA, jsonschema.Draft202012Validator)
    return trace


@pytest.mark.usefixtures("agent", "run_executor")
async def test_a_real_run_export_matches_the_schema(person, scripted):
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="It is **42**."))
    run = await run_question("6 * 7?", user=person)

    answer, text, _ = await fetch(person, f"/traces/{run.pk}/export.json")
    trace = validate_export(text)

    assert answer.headers["Content-Type"] == "application/json"
    assert (
        answer.headers["Content-Disposition"] == f'attachment; filename="trace-{run.pk}.json"'
    )
    assert answer.headers["Cache-Control"] == "no-store"
    assert (trace["schema"], trace["masked"]) == ("ashiato.trace/1", False)
    assert trace["run"]["question"] == "6 * 7?"
    assert trace["run"]["person"] == "ada"
    assert [step["number"] for step in trace["steps"]] == [1, 2, 3]
    assert trace["steps"][1]["action_input"] == {"expression": "6 * 7"}
    kinds = [event["type"] for event in trace["events"]]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
    assert not {"delta", "thought_delta"} & set(kinds)


async def test_another_users_run_is_exported_masked(personal_run, reviewer):
    for form in ("json", "md"):
        _, text, _ = await fetch(reviewer, f"/traces/{personal_run.pk}/export.{form}")

        assert not any(secret in text for secret in PERSONAL)
        assert "‹email›" in text
    forms = [e.detail["form"] async for e in AuditEntry.objects.filter(action="run.exported")]
    assert sorted(forms) == ["json", "markdown"]


async def test_a_masked_export_matches_the_schema(personal_run, reviewer, person):
    _, text, _ = await fetch(reviewer, f"/traces/{personal_run.pk}/export.json")
    trace = validate_export(text)

    assert (trace["masked"], trace["run"]["person"]) == (True, None)
    assert trace["approvals"][0]["arguments"] == '{"mail": "‹email›"}'
    _, text, _ = await fetch(person, f"/traces/{personal_run.pk}/export.json")
    assert MAIL in validate_export(text)["run"]["question"]


async def test_the_approver_is_in_the_owners_export_but_not_in_a_masked_one(
    personal_run, reviewer, person
):
    await personal_run.approvals.aupdate(decided_by=person)
    decided = {"id": "c1", "step": 1, "by": person.pk, "by_name": "ada"}
    await personal_run.events.acreate(
        seq=9, type="approval_resolved", agent="clerk", time=timezone.now(), data=decided
    )

    for user, name in ((reviewer, None), (person, "ada")):
        _, text, _ = await fetch(user, f"/traces/{personal_run.pk}/export.json")
        trace = validate_export(text)
        assert trace["approvals"][0]["decided_by"] == name
        assert trace["events"][-1]["data"].get("by_name") == name
        assert ("by" in trace["events"][-1]["data"]) == (name is not None)


async def test_a_rerun_export_says_so_even_without_its_origin(personal_run, person):
    personal_run.origin_step = 3
    await personal_run.asave()

    _, text, _ = await fetch(person, f"/traces/{personal_run.pk}/export.json")

    assert validate_export(text)["run"]["origin"]["step"] == 3


async def test_a_long_run_is_streamed_in_chunks(personal_run, person):
    when = timezone.now()
    await AgentStep.objects.abulk_create(
        AgentStep(run=personal_run, number=n, kind="thought", status="done", started_at=when)
        for n in range(2, 302)
    )
    await RunEvent.objects.abulk_create(
        RunEvent(run=personal_run, seq=n, type="status", time=when, data={"x": "y" * 999})
        for n in range(5, 505)
    )

    _, text, pieces = await fetch(person, f"/traces/{personal_run.pk}/export.json")

    assert pieces > 5
    trace = json.loads(text)
    assert [step["number"] for step in trace["steps"]] == list(range(1, 302))
    assert [event["seq"] for event in trace["events"]] == list(range(3, 505))


@pytest.mark.usefixtures("agent", "run_executor")
async def test_a_run_is_exported_as_a_readable_document(person, scripted):
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="It is **42**."))
    run = await run_question("What is 6 * 7?", user=person)

    answer, text, _ = await fetch(person, f"/traces/{run.pk}/export.md")

    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert text.startswith("# What is 6 \\* 7?\n\n- **Run**: \\#")
    assert "\n## Answer\n\n> It is **42**.\n\n## Sources\n\n- \\[1\\] " in text
    assert "### #2 Tool · calculator: 6 \\* 7\n" in text
    assert "\nObservation:\n\n```\n42\n```\n" in text


async def test_message_text_cannot_imitate_the_document_markup(person):
    run = await Run.objects.acreate(
        user=person, topic="a", query="# One\n\n## Two", answer="```", status="completed"
    )
    await AgentStep.objects.acreate(
        run=run,
        number=1,
        kind="tool",
        status="done",
        action="x",
        action_input={"a": "## no\n````\n# heading"},
        observation="````\n# no heading",
        started_at=run.started_at,
    )

    _, text, _ = await fetch(person, f"/traces/{run.pk}/export.md")
    headings = [t.tag for t in MarkdownIt().parse(text) if t.type == "heading_open"]

    assert headings == ["h1", "h2", "h2", "h2", "h3"]


async def test_the_document_is_in_the_readers_language(personal_run, person):
    client, japanese = AsyncClient(), {"accept-language": "ja"}
    await sync_to_async(client.force_login)(person)

    answer = await client.get(f"/traces/{personal_run.pk}/export.md", headers=japanese)
    text = b"".join([piece async for piece in answer.streaming_content]).decode()

    assert "- **状態**: " in text


def test_the_schema_matches_the_documentation():
    page = (DOCS / "trace-schema.md").read_text()

    assert exports.SCHEMA in page
    assert SCHEMA["properties"]["schema"]["const"] == exports.SCHEMA
    for part in ("run", "step", "approval", "event"):
        for name in SCHEMA["$defs"][part]["properties"]:
            assert f"`{name}`" in page, f"{part}.{name}"


async def test_disconnections_are_in_both_exports(person):
    run = await Run.objects.acreate(topic="a", query="?", agent_name="helper", user=person)
    left, back = (run.started_at + timedelta(seconds=at) for at in (1.5, 4))
    await Disconnection.objects.acreate(run=run, page="one", left_at=left, came_back_at=back)

    _, text, _ = await fetch(person, f"/traces/{run.pk}/export.json")
    _, document, _ = await fetch(person, f"/traces/{run.pk}/export.md")

    times = {"left_at": left.isoformat(), "came_back_at": back.isoformat()}
    assert validate_export(text)["disconnections"] == [{"reason": "lost", **times}]
    assert "- 1.50 s: The page lost its connection · 4.00 s: The page reconnected" in document
