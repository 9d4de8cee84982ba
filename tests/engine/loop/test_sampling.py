"""A tool has the agent's model answer, within the run's limits, if the agent allows it."""

import asyncio
from contextvars import Context, ContextVar

import pytest

from agents.engine import (
    ReActPlanner,
)
from agents.engine.call_context import SamplingRefused, SamplingRequest
from agents.engine.errors import ModelError
from agents.engine.events import EventType, StatusKind
from agents.engine.guardrails import GuardrailAction, Guardrails, Pattern
from agents.engine.loop import Capability, Sampling, standard_policy
from agents.engine.loop.tool_calls import live_call
from agents.engine.testing import ContextTool, Says, ScriptedModel
from tests.engine.conftest import make_runtime

ASK = SamplingRequest(
    source="writer",
    messages=[{"role": "user", "content": "Summarize the report."}],
    system="Be brief.",
    max_tokens=9_999,
    stop=["END"],
)
SUMMARY = Says(answer="All is well.")


async def uses_model(context):
    reply = await context.sample(ASK)
    return f"{reply.model}: {reply.text} {reply.stop_reason}"


async def is_refused(context):
    try:
        return (await context.sample(ASK)).text
    except SamplingRefused as error:
        return f"refused: {error}"


async def run(*script, work=uses_model, guardrails=None, **options):
    """Run a tool that uses the model; return the events and the model."""
    model = options.pop("model", ScriptedModel)(Says.call("work"), *script)
    planner = ReActPlanner(model, "scripted", parameters=options.pop("parameters", None))
    options = {"capabilities": [Sampling()]} | options
    tools = [ContextTool(work, timeout=options.pop("timeout", None))]
    runtime = make_runtime(planner, tools, guardrails, **options)
    return [event async for event in runtime.stream("Go")], model


def response(events):
    return next(e.data["content"] for e in events if e.type is EventType.TOOL_RESPONSE)


def samples(events):
    return [e.data for e in events if e.data.get("kind") == StatusKind.SAMPLING]


async def test_the_agents_model_answers_the_tool():
    events, model = await run(SUMMARY, Says(answer="Done."), parameters={"max_tokens": 300})

    assert response(events) == "scripted: All is well. endTurn"
    sent = model.requests[1]
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Summarize the report."},
    ]
    assert (sent["max_tokens"], sent["stop"], sent["tools"]) == (300, ["END"], None)
    [note] = samples(events)
    assert (note["source"], note["reply"], note["model"]) == (
        "writer",
        "All is well.",
        "scripted",
    )
    assert note["prompt"] == "system: Be brief.\n\nuser: Summarize the report."
    assert not any(e.type is EventType.DELTA and "All" in e.data["content"] for e in events)


async def test_a_request_of_another_task_belongs_to_the_call():
    """A server's request arrives in the task that reads from it."""
    seen, whose = [], ContextVar("whose", default="")

    class Model(ScriptedModel):
        def stream(self, **request):
            seen.append(whose.get())
            return super().stream(**request)

    async def work(context):
        return await asyncio.create_task(uses_model(context), context=Context())

    class Spending(Capability):
        async def tool_call(self, tool, input, next):
            whose.set(tool.name)
            return await next(tool, input)

    script = (SUMMARY, Says(answer="Done."))
    await run(*script, work=work, model=Model, capabilities=[Spending(), Sampling()])

    assert seen == ["", "work", ""]


async def test_its_usage_counts_for_the_run():
    events, _ = await run(SUMMARY, Says(answer="Done."))

    usage = [e.data for e in events if e.type is EventType.USAGE]
    call = next(e.data for e in events if e.type is EventType.TOOL_CALL)
    assert [u["step"] for u in usage].count(call["step"]) == 1
    total = sum(u["total_tokens"] for u in usage)
    assert events[-1].data["usage"]["total_tokens"] == total


async def test_an_agent_refuses_unless_it_is_allowed():
    events, _ = await run(Says(answer="Done."), work=is_refused, capabilities=[])

    assert response(events) == "refused: This agent doesn't let servers use its model."
    assert samples(events)[0]["message"] == "This agent doesn't let servers use its model."


async def test_a_run_over_its_budget_refuses():
    policy = standard_policy(max_tokens=1)
    events, _ = await run(work=is_refused, policy=policy)

    assert EventType.TOOL_RESPONSE not in [e.type for e in events]  # the budget ends the run

    policy = standard_policy(max_tokens=1_000_000)

    async def work(context):
        context._sampler.run_state.progress.used.completion_tokens = 1_000_000
        return await is_refused(context)

    events, _ = await run(work=work, policy=policy)
    assert response(events).startswith("refused: The run reached its token limit")


async def test_requests_at_once_do_not_exceed_the_budget_together():
    async def work(context):
        context._sampler.run_state.progress.used.completion_tokens = 999_900
        replies = await asyncio.gather(*(is_refused(context) for _ in range(5)))
        return str(sum(not reply.startswith("refused") for reply in replies))

    long = Says(answer="All is well. " * 200)
    policy = standard_policy(max_tokens=1_000_000)
    events, model = await run(*[long] * 6, work=work, policy=policy)

    assert response(events) == "1"
    assert [request["tools"] for request in model.requests].count(None) == 1


async def test_a_call_can_use_the_model_a_limited_number_of_times(monkeypatch):
    monkeypatch.setattr(live_call, "MAX_SAMPLES", 1)

    async def work(context):
        await context.sample(ASK)
        return await is_refused(context)

    events, _ = await run(SUMMARY, Says(answer="Done."), work=work)

    assert response(events) == "refused: A call can use the model up to 1 times."


@pytest.mark.parametrize(
    ("pattern", "stage", "sentence"),
    [
        ("report", "tool_output", "refused: The request was blocked: "),
        ("well", "output", "refused: The model's response was blocked: "),
        ("well", "tool_input", "refused: The model's response was blocked: "),
    ],
)
async def test_guardrails_apply_in_both_directions(pattern, stage, sentence):
    rule = Pattern(pattern=pattern, name="r", stage=stage, action=GuardrailAction.BLOCK)
    script = (
        [Says(answer="Done.")] if stage == "tool_output" else [SUMMARY, Says(answer="Done.")]
    )
    rules = Guardrails(blocked_patterns=[rule])

    done = Says(answer="Done.")
    events, _ = await run(*script, done, work=is_refused, guardrails=rules)

    seen = next(n for n in samples(events))
    assert seen["message"].startswith(sentence.removeprefix("refused: "))
    findings = [e.data for e in events if e.type is EventType.GUARDRAIL]
    assert "work" in [finding["details"].get("tool") for finding in findings]


async def test_a_failing_model_is_a_clear_refusal():
    events, _ = await run(ModelError("Wrong key."), Says(answer="Done."), work=is_refused)

    assert response(events) == "refused: Wrong key."


async def test_images_and_empty_requests_are_refused():
    async def work(context):
        for content in ([], [{"role": "user", "content": [{"type": "image_url"}]}]):
            with pytest.raises(SamplingRefused):
                await context.sample(SamplingRequest(source="x", messages=content))
        return "done"

    events, _ = await run(Says(answer="Done."), work=work)

    assert response(events) == "done"


async def test_the_models_time_does_not_count_against_the_tools_timeout():
    class Slow(ScriptedModel):
        async def stream(self, **request):
            if len(self.requests) == 1:
                await asyncio.sleep(0.2)
            async for chunk in super().stream(**request):
                yield chunk

    model = Slow(Says.call("work"), SUMMARY, Says(answer="Done."))
    runtime = make_runtime(
        ReActPlanner(model, "scripted"),
        [ContextTool(uses_model, timeout=0.1)],
        capabilities=[Sampling()],
    )

    events = [event async for event in runtime.stream("Go")]

    assert response(events).startswith("scripted: All is well.")
