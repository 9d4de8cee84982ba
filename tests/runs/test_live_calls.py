"""What a tool reports while its call runs is visible in the step, live and afterwards."""

import asyncio

import pytest
from django.utils import translation

from agents import runs
from agents.db import database
from agents.engine.call_context import SamplingRefused, SamplingRequest
from agents.engine.events import EventType, StatusKind
from agents.engine.sentences import Sentence
from agents.engine.testing import ContextTool, Says
from agents.models import AgentStep, Run
from agents.web.presentation import StepView
from agents.web.presentation.formats import status_text
from agents.web.presentation.live_run import LiveRunView
from agents.web.presentation.steps.progress import ProgressView
from tests.conftest import run_question, until, verify_run
from tests.runs.conftest import launch

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


REQUEST = SamplingRequest(
    source="writer", messages=[{"role": "user", "content": "How is it?"}], max_tokens=50
)


@pytest.fixture
def tool(use_tool):
    """Replace the calculator by a function that gets the call's context."""
    return lambda work, **options: use_tool(ContextTool(work, "calculator", **options))


@pytest.fixture
def gate():
    return asyncio.Event()


def calls(*turns):
    return Says.call("calculator", input="1"), Says(answer="Done.")


async def until_status(run, kind):
    for _ in range(200):
        rows = run.events.filter(type=EventType.STATUS).order_by("-seq")
        if [row async for row in rows if row.data["kind"] == kind]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"There was no {kind}.")


async def test_progress_is_a_bar_in_the_live_step_and_a_note_afterwards(tool, gate, scripted):
    async def work(context):
        context.report_progress(3, 4, "Copying <b>")
        await gate.wait()
        context.report_progress(4, 4, "Copied")
        return "copied"

    tool(work)
    scripted(*calls())
    run = await launch()
    await until_status(run, StatusKind.TOOL_PROGRESS)
    live = await database.run(LiveRunView(run.pk).snapshot)

    assert f'<progress id="step-{run.pk}-2-bar" value="75" max="100"></progress>' in live
    assert f'<label for="step-{run.pk}-2-bar">Copying &lt;b&gt;</label>' in live

    gate.set()
    await runs.wait(run)
    step = await AgentStep.objects.aget(run=run, kind="tool")
    assert [note["progress"] for note in step.notes] == [4]  # only the last one
    assert StepView(step, run).notes == ["Last progress: 100%, Copied"]
    assert "<progress" not in await database.run(LiveRunView(run.pk).snapshot)
    await verify_run(run)


def test_a_starting_server_is_reported_in_the_readers_language():
    notes = [
        {
            "kind": StatusKind.TOOL_PROGRESS,
            "progress": 0,
            "total": None,
            "message": Sentence("%(name)s is starting.", name="shop"),
        }
    ]
    with translation.override("ja"):
        label = ProgressView.of(notes).label

    assert label.startswith("shop")
    assert "starting" not in label


async def test_a_page_gets_only_the_bar_while_a_call_reports_progress(tool, gate, scripted):
    async def work(context):
        context.report_progress(1, message="Indexing")
        await gate.wait()
        return "indexed"

    tool(work)
    scripted(*calls())
    run = await launch()
    await until(run, EventType.TOOL_CALL)
    await until_status(run, StatusKind.TOOL_PROGRESS)

    def frames():
        page = LiveRunView(run.pk)
        page.snapshot()
        event = run.events.get(type=EventType.STATUS).value
        return page.changes([event.to_dict()])

    html = await database.run(frames)
    gate.set()
    await runs.wait(run)

    assert 'hx-swap-oob="true"><label for=' in html
    assert "<progress id=" in html
    assert "value=" not in html  # the total is unknown
    assert 'class="step"' not in html


async def test_repeated_calls_are_notes_of_the_step(tool, scripted):
    async def work(context):
        if one.calls == 1:
            raise ConnectionError("refused")
        return "2"

    one = tool(work)
    scripted(*calls())
    run = await run_question("Count")
    step = await AgentStep.objects.aget(run=run, kind="tool")

    [note] = StepView(step, run).notes
    assert note.startswith("Attempt 2 of calculator after 0.")
    assert note.endswith("s: calculator failed: ConnectionError: refused")
    assert (step.attempts, step.observation) == (2, "2")
    assert (await Run.objects.aget(pk=run.pk)).status == Run.Status.COMPLETED


def test_a_call_that_is_being_retried_says_so():
    note = {"kind": "retry", "tool": "search", "attempt": 2, "seconds": 0.2, "message": "Busy."}

    assert status_text.waiting_sentence([note]) == "Retrying (attempt 2): Busy."


async def test_a_tool_that_uses_the_model_shows_prompt_and_reply(agent, tool, scripted):
    async def work(context):
        for _ in range(2):
            await context.sample(REQUEST)
        return "done"

    agent.allows_sampling = True
    await agent.asave()
    tool(work)
    call, done = calls()
    scripted(call, Says(answer="It is <b>fine</b>."), Says(answer="Still fine."), done)
    run = await run_question("Go")
    html = await database.run(LiveRunView(run.pk).snapshot)

    assert html.count("writer called the model (demo).") == 2
    assert "user: How is it?" in html
    assert "It is &lt;b&gt;fine&lt;/b&gt;." in html
    step = await AgentStep.objects.aget(run=run, kind="tool")
    found = [e.data async for e in run.events.filter(type="usage")]
    usage = [data for data in found if data["step"] == step.number]
    assert len(usage) == 2
    assert step.total_tokens == sum(data["total_tokens"] for data in usage)
    spent = sum(data["total_tokens"] for data in found)
    assert run.prompt_tokens + run.completion_tokens == spent


async def test_without_permission_a_tool_gets_the_reason_for_the_refusal(tool, scripted):
    async def work(context):
        with pytest.raises(SamplingRefused, match="doesn't let servers use its model"):
            await context.sample(REQUEST)
        return "done"

    tool(work)
    scripted(*calls())
    run = await run_question("Go")
    step = await AgentStep.objects.aget(run=run, kind="tool")

    assert StepView(step, run).notes == [
        "writer wasn't allowed to call the model: This agent doesn't let servers use its model."
    ]
