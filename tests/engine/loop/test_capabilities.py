"""Capabilities: one list, and its order is the order of their hooks."""

import asyncio
import json
from contextlib import aclosing

import pytest

from agents.engine import AgentState, Capability, ReActPlanner, ToolRegistry, ToolResult
from agents.engine.loop import Approvals, Citations, Sampling, without
from agents.engine.prompt_parts import PromptPart
from agents.engine.testing import Says
from tests.engine.conftest import Echo, make_runtime

CALL = Says.call("echo", text="hi")


class Recorder(Capability):
    """Records its hooks in a list that it shares with others."""

    def __init__(self, name, calls):
        self.name = name
        self.calls = calls

    def record(self, hook):
        self.calls.append(f"{hook} {self.name}")

    async def tools(self, run, tools):
        self.record("tools")
        return ToolRegistry([*tools, Echo(f"echo_{self.name}")])

    async def instructions(self, run):
        self.record("instructions")
        return [
            PromptPart(source="agent", text=f"About {self.name}."),
            PromptPart(source="agent", text=f"Recalled by {self.name}.", is_recalled=True),
        ]

    async def before_run(self, run):
        self.record("before_run")
        return []

    async def model_call(self, call, next):
        self.record("model_call")
        async with aclosing(next(call)) as events:
            async for event in events:
                yield event
        self.record("reply")

    async def tool_call(self, tool, input, next):
        self.record("tool_call")
        outcome = await next(tool, input)
        self.record("result")
        return outcome

    async def after_run(self, run, answer):
        self.record("after_run")
        answer.text += f" {self.name}"
        return []


@pytest.fixture
def recorded(agent):
    """Return an agent with two recorders, and what they record."""
    calls = []
    capabilities = [Recorder("a", calls), Capability(), Recorder("b", calls)]
    script = (CALL, Says(answer="Hi."))
    return agent(*script, tools=[Echo()], capabilities=capabilities), calls


async def test_hooks_are_called_in_the_order_of_the_list(recorded):
    runtime, calls = recorded

    result = await runtime.run("Go")

    turn = ["model_call a", "model_call b", "reply b", "reply a"]
    use = ["tool_call a", "tool_call b", "result b", "result a"]
    before = ["tools a", "tools b", "instructions a", "instructions b"]
    before += ["before_run a", "before_run b"]
    assert calls == [*before, *turn, *use, *turn, "after_run a", "after_run b"]
    assert result.answer == "Hi. a b"


async def test_a_run_gets_the_tools_and_instructions_of_its_capabilities(recorded):
    runtime, _calls = recorded

    await runtime.run("Go")

    request = json.dumps(runtime.planner.llm.requests[0])
    assert request.index("About a.") < request.index("About b.")
    assert request.index("Recalled by a.") < request.index("Recalled by b.")
    assert "echo_a" in request
    assert "echo_b" in request
    assert runtime.tools.list_tools() == ["echo"]  # other runs have their own


async def test_a_hook_that_is_not_overridden_costs_nothing(agent):
    runtime = agent(Says(answer="Hi."), capabilities=[Capability()])

    assert not runtime.hooks.model_call
    assert (await runtime.run("Go")).answer == "Hi."


def test_a_run_of_another_kind_leaves_capabilities_out():
    capabilities = [Citations(), Approvals(), Sampling()]

    assert without(capabilities, Approvals, Sampling) == capabilities[:1]


class Hanging:
    """A tool that never ends."""

    name, description, effect = "hang", "Hangs.", "read"

    def __init__(self):
        self.has_started = asyncio.Event()

    async def execute(self, input):
        self.has_started.set()
        await asyncio.Event().wait()
        return ToolResult("Never.")


async def test_a_run_ends_at_its_abort_event_and_the_next_one_goes_on(agent):
    tool = Hanging()
    state = AgentState()
    runtime = agent(Says.call("hang"), Says(answer="Sure."), tools=[tool])
    abort_event = asyncio.Event()
    run = asyncio.create_task(runtime.run("Go", state, abort_event=abort_event))
    await tool.has_started.wait()
    abort_event.set()

    result = await run
    after = await runtime.run("Still there?", state)

    assert (result.stopped_reason, after.answer) == ("cancelled", "Sure.")
    answered = [m["tool_call_id"] for m in state.get_messages() if m["role"] == "tool"]
    assert len(answered) == 1


async def test_leaving_an_agent_ends_its_runs():
    class Silent:
        async def stream(self, **request):
            await asyncio.Event().wait()
            yield {}

    async with make_runtime(ReActPlanner(Silent(), "silent"), [Echo()]) as runtime:
        assert [tool["function"]["name"] for tool in runtime.available_tools] == ["echo"]
        run = asyncio.create_task(runtime.run("Go"))
        await asyncio.sleep(0)

    assert (await run).stopped_reason == "cancelled"
