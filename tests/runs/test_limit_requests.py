"""A run in a chat that would pass its own limit waits for a decision."""

import pytest
from django.contrib.auth.models import Permission

from agents.engine.testing import Says
from agents.models import AgentStep, Approval, ToolRegistration
from tests.conftest import as_async_user, run_question
from tests.runs.conftest import finish_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

CALL = Says.call("calculator", expression="1+1")
DONE = Says(answer="It is 2.")


@pytest.fixture
async def limited(agent):
    """An agent whose first turn alone passes its token limit."""
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="calculator"))
    agent.max_run_tokens, agent.max_raise = 20, 100
    await agent.asave()
    return agent


async def send(user, request, verdict):
    client = await as_async_user(user)
    form = {"verdict": verdict, f"digest-{request.pk}": request.digest}
    return await client.post(f"/approvals/{request.pk}/", form, headers={"HX-Request": "true"})


async def page(user, path="/approvals/"):
    return (await (await as_async_user(user)).get(path)).text


@pytest.fixture
async def waiting(limited, scripted, person):
    """A run at its limit, which its user can raise."""
    scripted(CALL, DONE)
    run = await run_question("How much is 1+1?", user=person)
    assert run.status == "waiting"
    return await Approval.objects.aget(run=run)


async def test_the_request_offers_to_raise_finish_and_stop(waiting, person):
    shown = await page(person)

    assert waiting.why == "budget"
    assert "token limit" in shown
    assert "Raise to" in shown
    assert "Finish now" in shown
    step = await AgentStep.objects.aget(run=waiting.run_id, number=waiting.step)
    assert (step.kind, step.status) == ("budget", "waiting")


async def test_a_raised_limit_is_saved_with_who_raised_it(waiting, person):
    assert (await send(person, waiting, "approve")).status_code == 204

    run = await finish_run(waiting)
    request = await Approval.objects.aget(pk=waiting.pk)
    assert run.answer == "It is 2."
    assert (request.verdict, request.new_arguments) == ("approved", "raise")
    assert request.decided_by_id == person.pk
    assert "raised the limit to" in await page(person, f"/traces/{run.pk}/")


async def test_finishing_answers_without_the_tool(waiting, person, scripted):
    model = scripted(DONE)

    await send(person, waiting, "reject")

    run = await finish_run(waiting)
    assert (run.status, run.answer, run.tool_calls) == ("completed", "It is 2.", 0)
    assert not model.requests[-1].get("tools")


async def test_stopping_ends_the_run_there(waiting, person):
    await send(person, waiting, "stop")

    run = await finish_run(waiting)
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")
    assert "token limit" in run.detail


async def test_beyond_the_maximum_only_an_administrator_can_raise(
    limited, scripted, person, stranger
):
    limited.max_raise = 1
    await limited.asave()
    scripted(CALL, DONE)
    run = await run_question("How much is 1+1?", user=person)
    request = await Approval.objects.aget(run=run)
    assert "Only an administrator" in await page(person)
    assert "Only an administrator" in (await send(person, request, "approve")).text

    assert (await send(stranger, request, "approve")).status_code == 404
    right = await Permission.objects.aget(codename="raise_budgets")
    stranger.is_staff = True
    await stranger.asave()
    await stranger.user_permissions.aadd(right)
    assert "How much is 1+1?" not in await page(stranger)
    assert (await send(stranger, request, "approve")).status_code == 204

    assert (await finish_run(request)).answer == "It is 2."


@pytest.mark.parametrize("about", [{"topic": "schedule.1"}, {"user": None}])
async def test_a_run_without_a_person_ends_at_its_limit(limited, scripted, person, about):
    scripted(CALL)

    run = await run_question("How much is 1+1?", **{"user": person, **about})

    assert run.stopped_reason == "budget_exceeded"
    assert not await Approval.objects.aexists()


async def test_an_agent_that_may_not_be_raised_ends_at_its_limit(limited, scripted, person):
    limited.max_raise = 0
    await limited.asave()
    scripted(CALL)

    run = await run_question("How much is 1+1?", user=person)

    assert run.stopped_reason == "budget_exceeded"
