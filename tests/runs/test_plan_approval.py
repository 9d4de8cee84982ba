"""A plan that needs approval: run, edited or declined."""

import json
import time

import pytest
from django.db import connection

from agents.engine.testing import Says
from agents.models import Approval, Run
from agents.runs import approvals
from agents.runs.approvals import InvalidPlan
from tests.conftest import as_async_user, run_question, select
from tests.runs.conftest import decide, finish_run
from tests.runs.test_plans import DOUBLE, card, plan_reply, sum_of
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]

HTMX = {"HX-Request": "true"}


@pytest.fixture
async def waiting(agent, scripted, person):
    agent.mode, agent.shows_plan = "plan", True
    await agent.asave()
    scripted(plan_reply(sum_of("sum", "6 * 7"), DOUBLE), Says(answer="Done."))
    run = await run_question("Twice six times seven?", user=person)
    assert run.status == "waiting", run.detail
    return await Approval.objects.aget(run=run)


@pytest.fixture
async def client(person):
    return await as_async_user(person)


async def post(client, approval, verdict="approve", headers=HTMX, keys="0 1", **fields):
    """Submit the form; a step's field is named `0_expected`."""
    named = {f"plan-{approval.pk}-{n.replace('_', '-', 1)}": v for n, v in fields.items()}
    data = {f"digest-{approval.pk}": approval.digest, f"plan-{approval.pk}": keys}
    kept = {f"plan-{approval.pk}-1-after": "sum", "verdict": verdict}
    path = f"/approvals/{approval.pk}/"
    return await client.post(path, data | kept | named, headers=headers)


async def calls(run):
    return [s.action_input["expression"] async for s in run.steps.filter(kind="tool")]


async def test_a_plan_is_shown_as_text_not_as_json(waiting):
    html = await card(await Run.objects.aget())

    assert "helper asks before it runs a plan" in html
    assert "Run plan" in html
    assert "after sum" in html
    assert "${steps.sum.output} * 2" in html
    assert "Arguments" not in html


async def test_an_unchanged_plan_is_executed_unchanged(waiting, client):
    response = await post(client, waiting)

    run = await finish_run(waiting)
    await waiting.arefresh_from_db()
    assert response.status_code == 204
    assert (run.status, waiting.verdict) == ("completed", "approved")
    assert await calls(run) == ["6 * 7", "42 * 2"]


async def test_an_edited_step_is_executed_and_the_edit_recorded(waiting, client):
    expected = {"0_argument-expression": "6 * 8", "1_expected": ""}

    response = await post(client, waiting, **expected)

    run = await finish_run(waiting)
    await waiting.arefresh_from_db()
    html = await card(run)
    assert response.status_code == 204, response.text
    assert waiting.verdict == "edited"
    assert await calls(run) == ["6 * 8", "48 * 2"]
    assert "ada edited the plan: 1 changed, 1 unchanged" in html


async def test_a_removed_step_is_not_waited_for(waiting, client):
    changed = {"0_out": "1", "1_argument-expression": "2 * 2"}

    await post(client, waiting, **changed)

    run = await finish_run(waiting)
    assert await calls(run) == ["2 * 2"]


async def test_references_to_a_removed_step_are_errors_at_their_step(waiting, client):
    response = await post(client, waiting, **{"0_out": "1"})

    [problem] = select(response, '[data-key="1"] .problem')
    assert "which doesn't exist" in problem.text()
    assert select(response, f'[name="plan-{waiting.pk}-0-out"][checked]')
    assert select(response, f"#approval-{waiting.pk}[hx-swap-oob]")
    await waiting.arefresh_from_db()
    assert waiting.is_waiting


async def test_a_step_is_added_with_the_fields_of_its_tool(waiting, client):
    picked = {f"plan-{waiting.pk}-pick": "tool:calculator"}
    path = f"/approvals/{waiting.pk}/"
    data = {f"plan-{waiting.pk}": "0 1", f"plan-{waiting.pk}-0-expected": "It is 42."}

    response = await client.post(path, data | picked | {"verdict": "add"}, headers=HTMX)

    html = response.text
    assert f'name="plan-{waiting.pk}-2-argument-expression"' in html
    assert f'name="plan-{waiting.pk}-2-what" value="tool:calculator"' in html
    assert "It is 42." in html


async def test_an_added_step_is_executed(waiting, client):
    fields = {"2_name": "third", "2_what": "tool:calculator", "2_argument-expression": "1 + 1"}

    response = await post(client, waiting, keys="0 1 2", **fields)

    run = await finish_run(waiting)
    assert response.status_code == 204, response.text
    assert sorted(await calls(run)) == ["1 + 1", "42 * 2", "6 * 7"]


async def test_an_empty_question_is_an_error(waiting, client):
    named = {"2_name": "ask her", "2_what": "ask:", "2_ask": ""}

    response = await post(client, waiting, keys="0 1 2", **named)

    assert "Enter a question." in response.text


async def test_without_javascript_no_input_is_lost(waiting, client):
    response = await post(client, waiting, headers={}, **{"0_argument-expression": ""})

    html = response.text
    assert response.status_code == 422
    assert "the required argument &#x27;expression&#x27; to &#x27;calculator&#x27;" in html
    assert 'class="page-body approvals"' in html


async def test_a_rejected_plan_ends_the_run_with_the_reason(waiting, client):
    await post(client, waiting, verdict="reject", **{"0_argument-expression": "6 * 8"})

    run = await finish_run(waiting)
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")
    assert "Stopped. The plan was rejected." in await card(run)


def plan(**more):
    step = {"name": "a", "tool": "calculator", "arguments": {"expression": "1"}}
    return {"description": "Mine.", "steps": [step | more], "parameters": {}}


@pytest.mark.parametrize(
    ("value", "sentence"),
    one_in(
        4,
        [
            (plan(tool="rocket"), "needs the tool 'rocket', which isn't available"),
            (plan(agent="nobody"), "Use only one"),
            (plan(depends_on=["a"]), "Circular dependency"),
            (plan(depends_on=["b"]), "which doesn't exist"),
            (plan(arguments={"expression": 7}), "7 is not of type 'string'"),
            (
                plan(arguments={"expression": "${steps.b"}),
                "In 'expression' of step 'a', character 10",
            ),
            (plan(timeout="soon"), "number of seconds"),
            (plan(speed=3), "Unknown field: 'speed'"),
            (plan() | {"steps": 5}, "'steps' must be a list"),
            (plan() | {"steps": []}, "needs at least one step"),
            (plan() | {"steps": ["x"]}, "A step must be a mapping"),
        ],
    ),
)
async def test_an_invalid_plan_is_rejected(value, sentence, waiting, person):
    with pytest.raises(InvalidPlan) as refused:
        await decide(person, waiting, arguments=json.dumps(value))

    said = [words for each in refused.value.problems.values() for words in each]
    assert any(sentence in words for words in said), said
    await waiting.arefresh_from_db()
    assert waiting.is_waiting


async def test_a_plan_with_many_errors_is_checked_quickly_and_before_locking(
    waiting, person, monkeypatch
):
    steps = [
        {"name": f"n{0:070d}{n:05d}", "tool": "calculator", "depends_on": [f"m{0:070d}{n:04d}"]}
        for n in range(1_000)
    ]
    monkeypatch.setattr(
        approvals.plan_edits, "validate_plan", _unlocked(approvals.plan_edits.validate_plan)
    )

    began = time.process_time()
    with pytest.raises(InvalidPlan) as error:
        await decide(person, waiting, arguments=json.dumps({"steps": steps}))

    assert time.process_time() - began < 10  # without bounds it takes a minute and more
    assert len(error.value.problems) <= 200


def _unlocked(checked):
    def look(value, means):
        assert not connection.in_atomic_block
        return checked(value, means)

    return look


async def test_the_whole_plan_can_be_written_as_json(waiting, client):
    mine = {f"arguments-{waiting.pk}": json.dumps(plan(arguments={"expression": "5 * 5"}))}
    about = {f"digest-{waiting.pk}": waiting.digest, f"plan-{waiting.pk}": "0 1"}

    response = await client.post(
        f"/approvals/{waiting.pk}/", about | mine | {"verdict": "approve"}, headers=HTMX
    )

    assert response.status_code == 204, response.text
    assert await calls(await finish_run(waiting)) == ["5 * 5"]


async def test_json_errors_are_shown_above_the_field(waiting, client):
    several = plan() | {"steps": [{"name": n, "tool": "rocket"} for n in "abcd"]}
    mine = {f"arguments-{waiting.pk}": json.dumps(several, indent=1).replace("\n", "\r\n")}
    about = {f"digest-{waiting.pk}": waiting.digest, f"plan-{waiting.pk}": "0 1"}

    response = await client.post(
        f"/approvals/{waiting.pk}/", about | mine | {"verdict": "approve"}, headers=HTMX
    )

    html = response.text
    assert html.count("which isn&#x27;t available") == 4
    assert html.index("which isn&#x27;t available") > html.index("Full plan (JSON)")
    assert '"rocket"'.replace('"', "&quot;") in html


@pytest.mark.parametrize(
    "keys", one_in(3, ["0 1 7", "x -1 99999999999999999999", "", "0 0 0", "\0"])
)
@pytest.mark.parametrize(
    "typed", one_in(3, ["6\0 * 7", "\ud800".encode("utf-8", "surrogatepass"), "[" * 9])
)
async def test_any_form_data_gets_a_response(keys, typed, waiting, client):
    fields = {"0_argument-expression": typed, "7_what": "nothing:here", "7_name": typed}

    for verdict in ("add", "approve"):
        response = await post(client, waiting, verdict, keys=keys, **fields)
        assert response.status_code in {200, 204, 422}
        mine = {f"arguments-{waiting.pk}": typed, "verdict": verdict}
        response = await client.post(f"/approvals/{waiting.pk}/", mine)
        assert response.status_code in {200, 302, 422}


async def test_another_users_plan_returns_404(waiting, stranger):
    client = await as_async_user(stranger)

    for verdict in ("add", "approve", "reject"):
        assert (await post(client, waiting, verdict=verdict)).status_code == 404
