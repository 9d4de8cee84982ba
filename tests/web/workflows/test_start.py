import re

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.models import Approval, Run, ToolRegistration, Workflow
from agents.runs import approvals
from agents.runs.approvals import Decision
from agents.web.presentation.live_run import LiveRunView
from agents.web.workflows import start, versions
from agents.web.workflows.start import WorkflowNotStarted
from chat import messages
from chat.errors import MessageRejected
from tests.conftest import as_async_user, select, verify_run
from tests.sampling import one_in
from tests.web.workflows import pipeline

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

GREETING = """\
name: Greeting card
parameters: {to: null, times: 2, loud: false, words: [a, b], share: 0.5}
steps:
  - name: write
    tool: report_writer
    condition: parameters.times > 0
"""


NUL, HALF = r"""'["\\u0000"]'""", r"""'["\\ud800"]'"""
DEEP, DEEPER = "[" * 60 + "]" * 60, "[" * 6_000 + "]" * 6_000


@pytest.fixture
def greeting(pipeline_tools, editor):
    return versions.save(GREETING, editor)


GATE = """\
name: Gate
steps:
  - {name: look, tool: answer_cleaner}
  - {name: agree, ask: "Send ${steps.look.output}?", approves: true}
  - {name: send, tool: report_writer, depends_on: [agree]}
"""


async def carried_out(text, user):
    wish = await sync_to_async(start.parse_command)(text, user)
    run = await sync_to_async(start.prepare_run)(wish, user, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    return await verify_run(run)


async def test_the_pipeline_runs_from_end_to_end(workflow, person):
    run = await carried_out("/workflow アンケート集計レポート", person)

    assert run.status == "completed", run.detail
    assert run.answer == "平均は 2 です。"
    assert run.agent_name == "アンケート集計レポート"
    assert (await sync_to_async(lambda: run.workflow)()).number == 1
    called = run.events.filter(type="tool_call").order_by("seq")
    names = [event.data["function"]["name"] async for event in called]
    assert names == ["survey_reader", "answer_cleaner", "answer_counter", "report_writer"]


async def test_a_workflow_can_call_an_agent_with_the_same_name(editor, person):
    steps = "- {name: a, agent: helper, arguments: {task: What is 6 * 7?}}"
    await sync_to_async(versions.save)(f"name: helper\nsteps:\n  {steps}\n", editor)

    run = await carried_out("/workflow helper", person)

    assert run.status == "completed", run.detail
    assert "42" in run.answer


@pytest.mark.parametrize(
    ("text", "parameters"),
    one_in(
        4,
        [
            ("/workflow Greeting card to=Ada", {"to": "Ada", "times": 2, "loud": False}),
            ('/workflow "Greeting card" to="Ada L." times=5', {"to": "Ada L.", "times": 5}),
            ("/workflow greeting CARD\nto=Ada loud=yes", {"to": "Ada", "loud": True}),
            ("/workflow 「Greeting card」 to=「エイダ」", {"to": "エイダ"}),
            ('/workflow Greeting card to=a words=["x"]', {"words": ["x"]}),
            ("/workflow Greeting card to=two words times=1", {"to": "two words", "times": 1}),
        ],
    ),
)
def test_a_message_names_a_workflow_and_its_parameters(greeting, person, text, parameters):
    wish = start.parse_command(text, person)

    assert wish.version.workflow.name == "Greeting card"
    assert parameters.items() <= wish.parameters.items()
    again = start.parse_command(wish.query, person)
    assert again.parameters == wish.parameters


@pytest.mark.parametrize(
    ("text", "sentence"),
    one_in(
        4,
        [
            ("/workflow Greting card to=a", "Did you mean Greeting card?"),
            ("/workflow", "Which workflow? Choose one of these: Greeting card."),
            ("/workflow Greeting card", "to is required."),
            ("/workflow Greeting card to=a tims=3", "Did you mean times?"),
            (
                "/workflow Greeting card to=a times=many",
                "“many” isn't a valid value for times.",
            ),
            ("/workflow Greeting card to=a words=x", "“x” isn't a valid value for words."),
            ("/workflow Greeting card to=a loud=perhaps", "isn't a valid value for loud."),
            ("/workflow Greeting card to=a share=nan", "“nan” isn't a valid value for share."),
            ("/workflow Greeting card to=a share=1e999", "isn't a valid value for share."),
            ("/workflow Greeting card to=a words=[NaN]", "isn't a valid value for words."),
            ("/workflow Greeting card to=a words=[1e999]", "isn't a valid value for words."),
            (f"/workflow Greeting card to=a words={NUL}", "isn't a valid value for words."),
            (f"/workflow Greeting card to=a words={HALF}", "isn't a valid value for words."),
            (f"/workflow Greeting card to=a words={DEEP}", "isn't a valid value for words."),
            (f"/workflow Greeting card to=a words={DEEPER}", "isn't a valid value for words."),
        ],
    ),
)
def test_a_workflow_that_cannot_start_has_a_reason(greeting, person, text, sentence):
    with pytest.raises(WorkflowNotStarted, match=re.escape(sentence)):
        start.parse_command(text, person)


@pytest.mark.parametrize("text", ["workflow x", "/workflows", "what is /workflow", "/work"])
def test_other_messages_start_no_workflow(text, person):
    assert start.parse_command(text, person) is None


def test_a_workflow_with_missing_tools_does_not_start(greeting, person):
    ToolRegistration.objects.filter(name="report_writer").update(enabled=False)

    with pytest.raises(WorkflowNotStarted, match="needs the tool 'report_writer'"):
        start.parse_command("/workflow Greeting card to=a", person)


async def test_a_chat_message_starts_a_workflow(workflow, person):
    text = "/workflow アンケート集計レポート"

    message = await messages.submit(None, person, text, "a")
    await runs.wait(message.run)

    run = await verify_run(message.run)
    assert run.answer == "平均は 2 です。"
    assert message.session.title == "アンケート集計レポート"


def test_an_unknown_workflow_name_in_the_chat_is_rejected(workflow, person):
    with pytest.raises(MessageRejected, match="アンケート集計レポート"):
        messages.save(None, person, "/workflow アンケート集計", "a")

    assert not Run.objects.exists()


async def test_a_workflow_starts_from_its_page_with_the_forms_values(greeting, person):
    client = await as_async_user(person)
    form = {"parameter-to": "Ada", "parameter-times": "0", "parameter-loud": "false"}

    answer = await client.post(f"/workflows/{greeting.pk}/start/", form)
    run = await Run.objects.aget()
    await runs.wait(run)

    assert answer.status_code == 302
    assert run.query.startswith('/workflow "Greeting card" to=Ada times=0')
    run = await verify_run(run)
    assert run.status == "completed"
    assert await run.steps.filter(status="skipped").acount() == 1


async def test_an_invalid_form_has_errors_and_starts_nothing(greeting, person):
    client = await as_async_user(person)

    answer = await client.post(f"/workflows/{greeting.pk}/start/", {"parameter-to": ""})

    assert answer.status_code == 422
    assert "to is required." in answer.text
    assert not await Run.objects.aexists()


async def test_a_disabled_workflow_does_not_start(greeting, person):
    await Workflow.objects.aupdate(enabled=False)
    client = await as_async_user(person)

    assert (await client.post(f"/workflows/{greeting.pk}/start/")).status_code == 404


async def test_a_user_approves_a_step_and_the_run_continues(pipeline_tools, editor, person):
    await sync_to_async(versions.save)(GATE, editor)
    wish = await sync_to_async(start.parse_command)("/workflow Gate", person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    asked = await Approval.objects.aget(run=run)
    assert "[1, 2, 3]" in asked.arguments

    await approvals.decide(person, asked.pk, Decision(digest=asked.digest, is_approved=True))
    await runs.wait(run)

    assert (await verify_run(run)).status == "completed"
    assert run.answer == "平均は 2 です。"


async def test_a_workflow_is_shown_under_its_name_and_version(workflow, person):
    run = await carried_out("/workflow アンケート集計レポート", person)

    html = await sync_to_async(LiveRunView(run.pk).snapshot)()

    assert "アンケート集計レポート · version 1</h3>" in html


async def test_a_rejected_step_ends_the_run_with_a_reason(pipeline_tools, editor, person):
    await sync_to_async(versions.save)(GATE, editor)
    wish = await sync_to_async(start.parse_command)("/workflow Gate", person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    asked = await Approval.objects.aget(run=run)

    word = Decision(digest=asked.digest, is_approved=False, reason="too early")
    await approvals.decide(person, asked.pk, word)
    await runs.wait(run)

    run = await verify_run(run)
    assert run.status == "stopped"
    assert "too early" in run.detail
    assert not await run.steps.filter(action="report_writer").aexists()


async def test_a_run_keeps_the_version_it_started_with(workflow, person, editor):
    run = await carried_out("/workflow アンケート集計レポート", person)
    text = pipeline.TEXT.replace("集計レポート", "集計")
    await sync_to_async(versions.save)(text, editor, workflow=workflow, base=1)

    assert (await sync_to_async(lambda: run.workflow)()).text == pipeline.TEXT
    client = await as_async_user(person)
    shown = await client.get(f"/traces/{run.pk}/")
    [link] = select(shown, f'a[href="/workflows/{workflow.pk}/"]')
    assert link.text(strip=True) == "アンケート集計, version 1"
