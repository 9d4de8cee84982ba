"""A run's page, and the details of a step."""

import json
from itertools import product

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.engine.testing import Says
from agents.models import AgentStep, GuardrailPattern, Run, RunEvent
from agents.review.run_details.step_details import HEAD_CHARS, TAIL_CHARS, StepDetails
from agents.review.views.runs import TABS
from tests.conftest import as_async_user, run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

CALL = Says.call("calculator", input="6 * 7")


@pytest.fixture
async def page(person):
    client = await as_async_user(person)

    async def page(path, **options):
        answer = await client.get(path, **options)
        assert answer.status_code == 200, path
        return answer.text

    return page


async def details(run, number):
    step = await AgentStep.objects.aget(run=run, number=number)
    return StepDetails(await Run.objects.aget(pk=run.pk), step)


async def test_the_prompt_is_rebuilt_from_the_new_messages_of_each_turn(scripted):
    model = scripted(CALL, Says(answer="42"))
    run = await run_question("What is 6 * 7?")

    last = await details(run, 3)
    prompt = await sync_to_async(lambda: last.prompt)()

    assert prompt.messages == model.requests[1]["messages"]
    assert prompt.kept == len(model.requests[0]["messages"])
    assert [sent.role for sent in prompt.new] == ["assistant", "tool"]
    assert prompt.trimmed == []


async def test_the_request_tab_equals_the_sent_request(scripted):
    model = scripted(Says(answer="42"))
    run = await run_question("What is 6 * 7?")

    first = await details(run, 1)
    sent = json.loads(await sync_to_async(lambda: first.request)())

    assert sent["messages"] == model.requests[0]["messages"]
    assert sent["tools"] == model.requests[0]["tools"]


async def test_every_tab_of_every_step_can_be_read(scripted, person, page):
    scripted(CALL, Says(answer="42"))
    run = await run_question("What is 6 * 7?", user=person)

    for number, tab in product([1, 2, 3], [*TABS, "nothing"]):
        address = f"/traces/{run.pk}/steps/{number}/?tab={tab}"
        part = await page(address, headers={"HX-Request": "true"})
        assert "<html" not in part, address
        assert 'aria-current="page"' in part, address
        if number == 1:
            assert "<html" in await page(address)


async def test_beside_a_chat_a_step_is_its_input_and_its_result(scripted, person, page):
    scripted(CALL, Says(answer="42"))
    run = await run_question("What is 6 * 7?", user=person)

    headers = {"HX-Request": "true", "HX-Target": "side-panel"}
    part = await page(f"/traces/{run.pk}/steps/2/", headers=headers)

    assert part.startswith("<article data-panel-page")
    assert part.count('class="payload"') == 2
    assert 'class="tabs"' not in part


async def test_a_guardrail_finding_is_on_its_turn(scripted):
    await GuardrailPattern.objects.acreate(
        name="Hush", pattern="hush", stage="output", action="warn"
    )
    scripted(Says(answer="hush"))
    run = await run_question("Say it.")

    guards = await sync_to_async(lambda d: d.guardrails)(await details(run, 1))

    assert [guard.action for guard in guards] == ["warn"]


async def test_a_long_result_is_truncated_on_the_page_and_complete_in_the_file(person, page):
    long = "a" * HEAD_CHARS + "needle" * 1000 + "z" * TAIL_CHARS
    run = await Run.objects.acreate(user=person, topic="t", query="q", status="failed")
    await AgentStep.objects.acreate(
        run=run, number=1, kind="tool", action="x", observation=long, started_at=run.started_at
    )

    shown = await page(f"/traces/{run.pk}/steps/1/")
    file = await page(f"/traces/{run.pk}/steps/1/result/")

    assert "needle" not in shown
    assert "6,000 characters omitted" in shown
    assert file == long


async def test_a_long_run_starts_with_a_hundred_rows_and_loads_the_rest(person, page):
    run = await Run.objects.acreate(user=person, topic="t", query="q", status="failed")
    await Run.objects.filter(pk=run.pk).aupdate(ended_at=run.started_at)
    rows = [
        AgentStep(run=run, number=n, kind="thought", status="done", started_at=run.started_at)
        for n in range(1, 151)
    ]
    await AgentStep.objects.abulk_create(rows)

    first = await page(f"/traces/{run.pk}/")
    rest = await page(f"/traces/{run.pk}/steps/?after=100", headers={"HX-Request": "true"})

    assert 'id="step-100"' in first
    assert 'id="step-101"' not in first
    assert "50 more rows" in first
    assert rest.count('class="step"') == 50
    assert (await page(f"/traces/{run.pk}/?all=1")).count('class="step"') == 150


@pytest.mark.parametrize("path", ["steps/9/", "steps/1/nothing/", "steps/0/"])
async def test_missing_steps_return_404(path, scripted, person):
    scripted(Says(answer="42"))
    run = await run_question("What is it?", user=person)
    client = await as_async_user(person)

    assert (await client.get(f"/traces/{run.pk}/{path}")).status_code == 404


def test_a_tasks_result_is_its_whole_output(admin_client):
    run = Run.objects.create(query="?", status="completed", topic="chat.1")
    text = "A long answer. " * 40
    now = timezone.now()
    AgentStep.objects.create(
        run=run, number=1, kind="task", status="done", observation=text[:200], started_at=now
    )
    data = {"step": 1, "kind": "task", "observation": text[:200], "output": text}
    RunEvent.objects.create(run=run, seq=1, type="step", data=data, time=now, agent="helper")

    html = admin_client.get(f"/traces/{run.pk}/steps/1/").text

    assert text.strip() in html
