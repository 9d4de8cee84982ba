"""Plans with a model over HTTP, in both dialects and by both routes."""

import json

import pytest

from agents.catalog.language_models import model_clients
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.models import Run
from tests.conftest import run_question, verify_run
from tests.sampling import one_in
from tests.wire import WireServer, say

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]

MODELS_BY_ROUTE = {"direct": DirectModel, "litellm": LiteLLMModel}


@pytest.fixture(params=["native", "react"])
def planner(agent, request):
    agent.mode, agent.dialect, agent.model = "plan", request.param, "openai/gpt"
    agent.save()
    return agent


def plan(expression: str, **more) -> str:
    step = {"name": "sum", "tool": "calculator", "arguments": {"expression": expression}}
    steps = [{**step, "expected_outcome": "42"}]
    return json.dumps({"description": "Work it out.", "steps": steps, **more})


def found(is_met: bool) -> str:
    reason = "It is 42." if is_met else "It is 41."
    return json.dumps({"is_met": is_met, "reason": reason, "feedback": "Take 6 * 7."})


def reply(request, dialect: str):
    """Plan badly first, and better after the feedback."""
    messages = request.body["messages"]
    first, all_of_it = str(messages[0]["content"]), str(messages)
    if "You plan work" in first:
        was_told = "It is 41." in all_of_it
        said = plan("6 * 7" if was_told else "6 * 7 - 1")
    elif "You check the results" in first:
        said = found("Result:\\n42" in all_of_it)
    else:
        said = "It is 42."
    return say(said if dialect == "native" else f"Final Answer: {said}", chunks=3)


@pytest.mark.parametrize("route", one_in(4, MODELS_BY_ROUTE))
async def test_a_plan_that_fails_its_check_is_rewritten_and_succeeds(
    planner, monkeypatch, route
):
    async with WireServer(lambda request: reply(request, planner.dialect)) as server:
        monkeypatch.setattr(
            model_clients,
            "llm_by_name",
            lambda name: MODELS_BY_ROUTE[route]("key", server.url),
        )
        run = await verify_run(await run_question("What is 6 times 7?"))

    assert (run.status, run.answer) == (Run.Status.COMPLETED, "It is 42.")
    plans = [event.data async for event in run.events.filter(type="plan").order_by("seq")]
    assert [version["plan"] for version in plans] == [1, 2]
    assert "It is 41. Take 6 * 7." in plans[1]["feedback"][0]
    checks = run.events.filter(type="evaluation").order_by("seq")
    assert [check.data["is_met"] async for check in checks] == [False, True]


async def test_an_impossible_plan_is_cancelled_with_the_models_reason(planner, monkeypatch):
    why = json.dumps({"description": "", "steps": [], "cancel": "There is no tool for that."})
    said = why if planner.dialect == "native" else f"Final Answer: {why}"
    async with WireServer(lambda request: say(said)) as server:
        monkeypatch.setattr(
            model_clients, "llm_by_name", lambda name: DirectModel("key", server.url)
        )
        run = await verify_run(await run_question("Send an e-mail."))

    assert (run.status, run.detail) == (Run.Status.STOPPED, "There is no tool for that.")
