"""An interrupted evaluation isn't repeated, and its row is closed."""

from agents.engine.events import EventType
from tests.engine.conftest import Echo
from tests.engine.loop.test_approval import _reload_event, collect_events
from tests.engine.plans.plans import of, run_to_end, step, workflow


async def test_a_check_interrupted_after_its_finding_is_closed():
    def build():
        checked = step("one", expected_outcome="${output == 'one'}")
        return workflow(checked, tools=[Echo()])

    whole = await run_to_end(build())
    cut = next(at for at, event in enumerate(whole, 1) if event.type is EventType.EVALUATION)
    past = [_reload_event(event) for event in whole[:cut]]

    events = [*past, *await collect_events(build().resume(past))]

    ends = [data["step"] for data in of(events, EventType.STEP) if data["kind"] == "evaluation"]
    assert ends == [of(events, EventType.EVALUATION)[0]["step"]]
    assert len(of(events, EventType.EVALUATION)) == 1


async def test_an_expectation_can_refer_to_other_steps():
    same = "${output == steps.one.output}"
    steps = step("one"), step("two", expected_outcome=same)

    events = await run_to_end(workflow(*steps, tools=[Echo()]))

    [found] = of(events, EventType.EVALUATION)
    assert found["reason"] == "Condition not met: output == steps.one.output."
    assert not found["is_met"]


async def test_an_expectation_of_a_loop_can_refer_to_the_item():
    each = step(
        "one",
        arguments={"text": "${item}"},
        for_each=["a", "b"],
        expected_outcome="${output == item}",
    )

    events = await run_to_end(workflow(each, tools=[Echo()]))

    assert [found["is_met"] for found in of(events, EventType.EVALUATION)] == [True, True]
