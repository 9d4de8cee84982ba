"""Runs under limits: counted by call, refused with a reason that can be read later."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.engine.testing import delta
from agents.llm.usage_limits import UsageLimits
from agents.metering.budgets import limits
from agents.models import BudgetCounter, Quota, Run
from agents.web.presentation.steps.step_notes import note_sentence

pytestmark = [pytest.mark.django_db(transaction=True)]


async def limit(amount, measure="tokens", **owner):
    await Quota.objects.acreate(measure=measure, window="day", limit=amount, **owner)
    await sync_to_async(limits.ROWS.refresh)()


async def ask(person, agent):
    run = await sync_to_async(runs.prepare)(query="2+2?", topic="t", user=person, agent=agent)
    runs.launch(run)
    await runs.wait(run)
    return await Run.objects.aget(pk=run.pk)


async def test_a_run_counts_its_calls_for_its_agent_and_user(person, agent, run_executor):
    await limit(100_000, user=person)
    await limit(1_000, "calls", agent=agent)
    run = await ask(person, agent)

    user = await BudgetCounter.objects.aget(scope=f"user:{person.pk}")
    assert user.tokens == run.prompt_tokens + run.completion_tokens > 0
    of_agent = await BudgetCounter.objects.aget(scope=f"agent:{agent.pk}")
    assert of_agent.calls == run.turns + run.tool_calls


async def test_a_run_that_a_limit_refuses_ends_with_the_reason(person, agent, run_executor):
    await limit(1, "calls", agent=agent)
    run = await ask(person, agent)

    assert run.stopped_reason == "budget_exceeded"
    assert f"The limit of 1 call per day for the agent {agent.name}" in run.detail
    assert run.advice.startswith("The limit resets on")


async def test_trace_and_limits_agree_about_a_lying_provider(
    person, agent, run_executor, scripted
):
    class Lying:
        async def stream(self, **request):
            yield delta(content="4", finish_reason="stop")
            told = {"prompt_tokens": 10**6, "completion_tokens": 10**6, "cost": 5}
            limits_of_call = UsageLimits(request["model"], request["messages"], None, request)
            yield {"usage": limits_of_call.clamp(told), "choices": []}

    scripted(model=Lying())
    await limit(100_000_000, user=person)

    run = await ask(person, agent)

    step = await run.steps.aget(number=1)
    [note] = [note for note in step.notes if note["kind"] == "reported_usage"]
    assert "1,000,000" in note_sentence(note)
    counter = await BudgetCounter.objects.aget(scope=f"user:{person.pk}")
    assert counter.tokens == run.prompt_tokens + run.completion_tokens < 10**6
