"""The figures of a draft are checked, and the model corrects it once."""

import pytest

from agents.engine.events import EventType, StatusKind
from agents.engine.loop import FigureCheck
from agents.engine.planner import ReActPlanner
from agents.engine.testing import Says, ScriptedModel
from agents.tools.search import SearchTool
from tests.engine.conftest import make_runtime
from tests.engine.loop.test_approval import collect_events
from tests.engine.material.test_material import find, reload, search

WRONG = Says(answer="Ants have 6 legs and weigh 4,210 grams.")
RIGHT = Says(answer="Ants are described in the passage.")


def returned(events):
    kind = StatusKind.FIGURES_RETURNED
    return [event.data["figures"] for event in events if event.data.get("kind") == kind]


@pytest.fixture
def checked(agent):
    """Return a function for an agent that checks figures."""

    def build(*script, **more):
        more = {"capabilities": [FigureCheck()], "tools": [SearchTool(find)]} | more
        return agent(search("ant"), *script, **more)

    return build


async def test_a_draft_with_unsupported_figures_goes_back_once(checked):
    events = await collect_events(checked(WRONG, RIGHT).stream("What about ants?"))

    [figures] = returned(events)
    assert "4,210 grams" in figures
    assert events[-1].data["answer"] == RIGHT.answer
    [correction] = [
        message["content"]
        for event in events
        if event.type is EventType.STEP and event.data["kind"] == "thought"
        for message in event.data.get("messages", ())
        if message["role"] == "user"
    ]
    assert "4,210 grams" in correction


async def test_the_second_draft_is_the_answer_whatever_it_says(checked):
    events = await collect_events(checked(WRONG, WRONG).stream("What about ants?"))

    assert len(returned(events)) == 1
    assert events[-1].data["answer"] == WRONG.answer


async def test_a_draft_that_has_only_known_figures_is_the_answer(checked):
    right = Says(answer="You asked about 4,210 ants.")
    events = await collect_events(checked(right).stream("What about 4,210 ants?"))

    assert returned(events) == []
    assert events[-1].data["answer"] == right.answer


async def test_without_the_setting_or_results_nothing_goes_back(agent, checked):
    for runtime in (
        checked(WRONG, capabilities=[]),
        agent(WRONG, capabilities=[FigureCheck()], tools=[SearchTool(find)]),
    ):
        events = await collect_events(runtime.stream("What about ants?"))

        assert returned(events) == []
        assert events[-1].data["answer"] == WRONG.answer


async def test_without_a_turn_left_the_draft_is_the_answer(checked):
    events = await collect_events(checked(WRONG, max_steps=2).stream("What about ants?"))

    assert returned(events) == []
    assert events[-1].data["stopped_reason"] == "completed"


async def test_a_draft_goes_back_once_whatever_interrupts_it(checked, dialect):
    events = await collect_events(checked(WRONG, RIGHT).stream("What about ants?"))
    position = next(n for n, event in enumerate(events) if returned([event]))

    for count in range(position + 1, len(events)):
        planner = ReActPlanner(ScriptedModel(RIGHT, dialect=dialect), "m", dialect=dialect)
        later = make_runtime(planner, [SearchTool(find)], capabilities=[FigureCheck()])
        rest = await collect_events(later.resume(reload(events[:count])))

        assert returned(rest) == []
        assert rest[-1].data["answer"] == RIGHT.answer
