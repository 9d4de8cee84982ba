"""Panels and roles from rows, from the question to what is saved."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents import runs
from agents.access.masking import Masker, mask_row
from agents.engine.testing import Says
from agents.llm.direct.direct_model import DirectModel
from agents.management.commands import seed_demo
from agents.models import Agent
from agents.web.presentation import RunView
from agents.web.presentation.plans import panel_view
from tests.conftest import as_async_user, run_question, verify_run
from tests.runs.conftest import decide
from tests.wire import WireServer, say

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]

REVIEW = {
    "description": "Have it reviewed",
    "steps": [{"name": "look", "role": "Lawyer", "arguments": {"task": "Is it legal?"}}],
}


@pytest.fixture
def panel(samples):
    seed_demo.make_agents()
    return Agent.objects.get(name="panel")


async def test_the_seeded_panel_shows_where_its_members_differ(panel):
    run = await verify_run(await run_question("How many orders were refunded?", agent=panel))

    rows = [(s.kind, s.action) async for s in run.steps.filter(parent=None)]
    assert rows == [
        ("task", "helper"),
        ("task", "librarian"),
        ("evaluation", "agreement"),
        ("answer", ""),
    ]
    assert "(helper)" in run.answer
    assert (
        "**Differences**\n\n- helper: “The number of orders that were refunded is 23"
        in run.answer
    )
    check = await run.steps.aget(kind="evaluation")
    assert check.action_input["groups"] == [["helper"], ["librarian"]]
    assert [head["name"] for head in check.action_input["heads"]] == ["helper", "librarian"]


async def test_equal_answers_need_no_comparison_by_the_model(panel):
    run = await verify_run(await run_question("How do I approve a tool call?", agent=panel))

    check = await run.steps.aget(kind="evaluation")
    assert check.observation == "All members agree."
    assert not await run.steps.filter(parent=check.number).aexists()


@pytest.mark.parametrize(
    ("merge", "chosen", "words"),
    [("vote", "", "### helper"), ("judge", "helper", "> **helper**: It gives a figure.")],
)
async def test_a_panel_can_vote_or_have_a_judge(panel, merge, chosen, words):
    panel.merge = merge
    await panel.asave()

    run = await verify_run(await run_question("How many orders were refunded?", agent=panel))

    check = await run.steps.aget(kind="evaluation")
    assert check.action_input["chosen"] == chosen
    assert words in run.answer


async def test_a_panel_adds_up_numbers_and_the_trace_shows_the_working(
    agent, scripted, administrator
):
    members = [
        await Agent.objects.acreate(
            name=name, instructions=f"You are {name}.", model="openai/x"
        )
        for name in "ab"
    ]
    panel = await Agent.objects.acreate(
        name="adder", mode="panel", merge="sum", model="openai/x"
    )
    await sync_to_async(panel.handoffs.set)(members)
    async with WireServer(lambda request: say("It is 1,200 km.")) as server:
        scripted(model=DirectModel("key", server.url))
        run = await verify_run(await run_question("How far?", agent=panel, user=administrator))
    page = (await (await as_async_user(administrator)).get(f"/traces/{run.pk}/")).text

    assert run.answer == "**2,400 km**\n\n1,200 + 1,200 = 2,400 km"
    assert "1,200 + 1,200 = 2,400 km</dd>" in page
    assert len(server.requests) == 2


async def test_a_panel_resumes_when_all_its_approvals_are_decided(panel, person):
    twin = await Agent.objects.acreate(name="twin", auto_execute_tools=False)
    careful = await Agent.objects.aget(name="careful")
    await sync_to_async(lambda: twin.tools.set(careful.tools.all()))()
    await sync_to_async(panel.handoffs.set)([careful, twin])

    run = await run_question("What is 6 times 7?", agent=panel, user=person)
    questions = [question async for question in run.approvals.all()]
    for question in questions:
        await runs.wait(await decide(person, question))

    assert {question.agent_name for question in questions} == {"careful", "twin"}
    run = await verify_run(run)
    assert run.answer == "The result is **42** (`6 * 7`)."


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_a_panel_works_over_real_http(agent, scripted, dialect):
    judged = {"groups": [["a"], ["b"]], "differences": ["41 or 42."], "heading": "Differ"}
    judged |= {"choice": "b", "reason": "It was worked out."}
    answers = {"You are a.": "41", "You are b.": "42", "Then judge": json.dumps(judged)}

    def reply(request):
        told = request.body["messages"][0]["content"]
        said = next(answer for mark, answer in answers.items() if mark in told)
        return say(said if dialect == "native" else f"Final Answer: {said}", chunks=3)

    how = {"model": "openai/gpt", "dialect": dialect}
    members = [
        await Agent.objects.acreate(name=name, instructions=f"You are {name}.", **how)
        for name in "ab"
    ]
    panel = await Agent.objects.acreate(name="board", mode="panel", merge="judge", **how)
    await sync_to_async(panel.handoffs.set)(members)
    async with WireServer(reply) as server:
        scripted(model=DirectModel("key", server.url))
        run = await verify_run(await run_question("What is 6 * 7?", agent=panel))

    assert run.answer == "42\n\n> **b**: It was worked out.\n\n**Differ**\n\n- 41 or 42."
    assert len(server.requests) == 3


async def test_a_panel_gets_the_conversation(panel):
    before = [
        {"role": "user", "content": "How many orders were refunded in 2024?"},
        {"role": "assistant", "content": "None.\n\nNot one."},
    ]
    run = await run_question("How many orders were refunded?", agent=panel, history=before)

    assert "orders that were refunded" in run.answer


async def test_a_step_for_a_role_goes_to_the_agent_that_has_it(agent, scripted):
    lawyer = await Agent.objects.acreate(name="counsel", roles="lawyer, notary")
    planner = await _planner(lawyer)
    model = scripted(Says(answer=json.dumps(REVIEW)), Says(answer="Yes."), Says(answer="Good."))

    run = await verify_run(await run_question("May we?", agent=planner))

    model.assert_used_up()
    task = await run.steps.aget(kind="task")
    call = await run.steps.aget(kind="tool")
    assert (task.action, task.observation) == ("look", "Yes.")
    assert (call.action, call.action_input) == ("ask_counsel", {"task": "Is it legal?"})
    assert "lawyer, notary" in model.requests[0]["messages"][0]["content"]


async def test_a_step_for_a_role_of_people_waits_for_one_of_them(agent, scripted):
    planner = await _planner()
    await _give_expert(planner, await Group.objects.acreate(name="Lawyer"))
    scripted(Says(answer=json.dumps(REVIEW)))

    run = await run_question("May we?", agent=planner)

    question = await run.approvals.aget()
    assert run.status == "waiting"
    assert (question.role, question.tool) == ("Lawyer", "ask_person")


async def test_the_seeded_planner_asks_an_expert_agent(panel, person):
    lawyers = await Group.objects.acreate(name="legal")
    await sync_to_async(person.groups.add)(lawyers)
    planner = await Agent.objects.aget(name="planner")
    await _give_expert(planner, lawyers)
    query = "Ask legal whether we may keep addresses for ten years"

    run = await run_question(query, agent=planner)
    question = await run.approvals.aget()
    await runs.wait(await decide(person, question, reason="No, for two."))

    run = await verify_run(run)
    assert question.role == "legal"
    assert run.answer == "Legal says: No, for two."


async def test_a_plan_with_an_unknown_role_is_not_executed(agent, scripted):
    planner = await _planner()
    model = scripted(*[Says(answer=json.dumps(REVIEW))] * 3)

    run = await run_question("May we?", agent=planner)

    model.assert_used_up()
    assert run.status == "failed"
    assert run.detail.endswith("'look' needs the role 'Lawyer', which isn't available.")
    assert not await run.steps.filter(kind="task").aexists()


async def _give_expert(planner, group):
    """Let the planner ask this group without the user's approval."""
    await planner.experts.aadd(group)
    planner.asker_approves_questions = False
    await planner.asave()


async def _planner(*colleagues):
    planner = await Agent.objects.acreate(name="planner", mode="plan")
    await sync_to_async(planner.handoffs.set)(colleagues)
    return planner


FACTS = {
    "merge": "vote",
    "heads": [
        {"name": "a", "answer": "**42**", "problem": ""},
        {"name": "b", "answer": "42", "problem": ""},
        {"name": "c", "answer": "41", "problem": ""},
        {"name": "d", "answer": "", "problem": "d couldn't finish: It is empty."},
    ],
    "groups": [["a", "b"], ["c"]],
    "chosen": "a",
    "differences": [],
}
SUM = {
    "operation": "sum",
    "numbers": {"a": "42", "b": "42"},
    "results": [{"field": "", "value": "84", "working": "42 + 42 = 84"}],
    "left_out": ["c", "d"],
}


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({}, ["in the majority", "agrees with a", "differs", "no answer"]),
        (
            {"merge": "judge", "chosen": "c"},
            ["agrees with b", "agrees with a", "chosen by the judge", "no answer"],
        ),
        (
            {"merge": "synthesis", "chosen": "", "groups": [["a"], ["b"], ["c"]]},
            ["differs", "differs", "differs", "no answer"],
        ),
        (
            {"merge": "sum", "chosen": "", "arithmetic": SUM},
            ["42", "42", "no clear number", "no answer"],
        ),
    ],
)
def test_every_members_vote_has_a_label(changes, labels):
    view = panel_view.PanelView(FACTS | changes, "2 of 3 agree: a, b.")

    assert [head.label for head in view.members] == labels
    assert view.members[0].answer == "<p><strong>42</strong></p>\n"
    assert view.title.startswith("Panel of 4 agents · ")


async def test_the_end_of_a_replay_and_the_trace_show_the_same_members(panel, administrator):
    run = await run_question("How many orders were refunded?", agent=panel, user=administrator)
    last = await run.events.acount()
    client = await as_async_user(administrator)

    pages = [
        (await client.get(f"/traces/{run.pk}/{rest}")).text
        for rest in ("", f"replay/?at={last}", f"replay/?at={last - 1}")
    ]

    assert [page.count('<li class="panel-member"') for page in pages] == [2, 2, 0]


async def test_panel_answers_are_masked_for_reviewers(panel):
    run = await run_question("How many orders were refunded?", agent=panel)
    check = await run.steps.aget(kind="evaluation")
    check.action_input["heads"][0]["answer"] = "Ask jo@example.com."
    await check.asave()

    view = RunView(mask_row(run), "trace", masker=Masker())
    head = (await sync_to_async(lambda: view.panel)()).members[0]

    assert head.name == "helper"
    assert "jo@example.com" not in head.answer
