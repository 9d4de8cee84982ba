from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission

from agents import runs
from agents.catalog import agent_factory
from agents.models import GuardrailPattern, Run
from agents.review.models import Example
from agents.review.replays import reruns
from agents.web.workflows import start, versions
from tests.conftest import as_async_user, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
async def finished(workflow, person):
    wish = await sync_to_async(start.parse_command)("/workflow アンケート集計レポート", person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    return await verify_run(run)


async def test_a_rerun_has_the_same_workflow(finished, person):
    def again():
        return reruns.prepare(finished, 1, reruns.RerunSetup(finished).before, person)

    run = await sync_to_async(again)()
    runs.resume(run)
    await runs.wait(run)

    await run.arefresh_from_db()
    assert run.workflow_id == finished.workflow_id
    assert run.agent_name == finished.agent_name


ERRAND = """\
name: Errand
steps:
  - {name: sum, agent: helper, arguments: {task: What is 12.5% of 3480?}}
"""


@pytest.fixture
async def errand(editor, person):
    """A workflow that calls the agent whose model and limits it uses."""
    await sync_to_async(versions.save)(ERRAND, editor)
    wish = await sync_to_async(start.parse_command)("/workflow Errand", person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    return await verify_run(run)


async def called_tools(run):
    steps = run.steps.filter(kind="tool").order_by("number")
    return [step.action async for step in steps]


@pytest.mark.parametrize("kept", [{}, {"tools": []}])
async def test_an_agent_in_a_rerun_workflow_has_its_tools(kept, errand, person):
    def again():
        return reruns.prepare(errand, 1, reruns.RerunSetup(errand).before, person)

    run = await sync_to_async(again)()
    assert run.overrides == {}
    run.overrides = kept
    await run.asave()
    runs.resume(run)
    await runs.wait(run)

    run = await verify_run(run)
    assert await called_tools(run) == await called_tools(errand) == ["ask_helper", "calculator"]
    assert run.answer == errand.answer


async def test_the_rerun_form_omits_settings_of_the_workflow(errand, person):
    await person.user_permissions.aadd(await Permission.objects.aget(codename="rerun_runs"))
    client = await as_async_user(person)

    page = (await client.get(f"/traces/{errand.pk}/again/1/")).text

    assert 'name="model"' in page
    assert 'name="tools"' not in page
    assert 'name="instructions"' not in page
    assert "can no longer use" not in page


async def test_a_workflow_is_rerun_with_one_click(errand, person):
    client = await as_async_user(person)

    sent = await client.post(f"/traces/{errand.pk}/rerun/1/", {"token": "0" * 32})

    run = await Run.objects.aget(origin=errand)
    assert sent.url == f"/traces/{errand.pk}/compare/{run.pk}/"
    assert (run.overrides, run.workflow_id) == ({}, errand.workflow_id)


async def test_a_workflow_is_rerun_without_a_guardrail_and_with_another_fallback(
    finished, person
):
    await GuardrailPattern.objects.acreate(name="Off", pattern="x")
    differ = {"guardrails": [], "fallback": "openai/gpt-5"}

    def again():
        wish = replace(reruns.RerunSetup(finished).before, **differ)
        return reruns.prepare(finished, 1, wish, person)

    runtime = await agent_factory.build(await sync_to_async(again)())

    assert not runtime.guardrails.patterns
    assert [planner.model for planner in runtime.planners[1:]] == ["openai/gpt-5"]


async def test_a_workflow_run_cannot_be_saved_as_an_example(errand, administrator):
    client = await as_async_user(administrator)

    page = (await client.get(f"/traces/{errand.pk}/")).text
    sent = await client.post(f"/traces/{errand.pk}/example/", {"name": "Errand"})

    assert f"/traces/{errand.pk}/verdict/" in page
    assert f"/traces/{errand.pk}/example/" not in page
    assert "be saved as examples" in sent.text
    assert not await Example.objects.aexists()


async def test_an_interrupted_workflow_resumes(finished, workflow, person):
    """As after a process that died: the events of the first steps are all that is left."""
    half = finished.events.order_by("seq")
    cut = await half.filter(type="tool_response").aget(data__name="answer_cleaner")
    run = await Run.objects.acreate(
        user=person,
        topic="chat.2",
        query=finished.query,
        agent=await sync_to_async(lambda: finished.agent)(),
        agent_name=finished.agent_name,
        model=finished.model,
        workflow_id=finished.workflow_id,
    )
    async for event in half.filter(seq__lte=cut.seq):
        event.pk, event.run = None, run
        await event.asave(force_insert=True)

    assert await runs.recover_abandoned() == 1
    await runs.wait(run)

    run = await verify_run(run)
    assert run.status == "completed"
    called = run.events.filter(type="tool_call").order_by("seq")
    names = [event.data["function"]["name"] async for event in called]
    assert names == ["survey_reader", "answer_cleaner", "answer_counter", "report_writer"]
