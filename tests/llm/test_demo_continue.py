"""The demo model continues an unfinished question."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import translation

from agents.engine.state import INTERRUPTED
from agents.llm.demo.conversation import Question
from agents.models import Agent
from agents.runs.event_store import transcript
from tests.conftest import run_question
from tests.llm.demo_shop import converse
from tests.llm.test_demo import shop, tools
from tests.sampling import one_in

__all__ = ["shop", "tools"]

CALCULATOR, DATABASE = "calculator", "database"

GO_ON, GO_ON_JA = "Continue where you stopped.", "中断したところから続けてください。"
SUM, SUM_JA = "What is 12.5% of 3480?", "3480の12.5%は？"
ANSWER, ANSWER_JA = (
    "The result is **435** (`3480 * 12.5 / 100`).",
    "答えは **435** です（`3480 * 12.5 / 100`）。",
)
SHARE = "How many customers are there, and what is 15% of that?"
OUT = [("assistant", "(No answer: 1 step.)")]
FOUND_SUM = (CALCULATOR, '{"expression": "3480 * 12.5 / 100"}', "435")
FOUND_COUNT = (DATABASE, '{"sql": "SELECT 1"}', '{"columns": ["customers"], "rows": [[40]]}')


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


@pytest.mark.parametrize(
    ("question", "wish", "answer"),
    [
        (SUM, GO_ON, ANSWER),
        (SUM_JA, GO_ON_JA, ANSWER_JA),
        (SUM_JA, GO_ON, ANSWER_JA),
        (SUM, "go on", ANSWER),
        (SUM_JA, "続けて", ANSWER_JA),
    ],
)
async def test_results_are_not_fetched_again(question, wish, answer, dialect, tools):
    history = [("user", question), FOUND_SUM, *OUT]

    assert await converse(wish, tools, dialect, history) == ([], answer)


async def test_only_missing_steps_are_run(dialect, tools):
    history = [("user", SHARE), FOUND_COUNT, *OUT]

    calls, answer = await converse(GO_ON, tools, dialect, history)

    assert calls == [(CALCULATOR, "40 * 15 / 100")]
    assert answer == "The number of customers is **40**. The result is **6** (`40 * 15 / 100`)."


async def test_a_question_can_be_continued_several_times(dialect, tools):
    sum = (CALCULATOR, '{"expression": "40 * 15 / 100"}', "6")
    history = [("user", SHARE), FOUND_COUNT, *OUT, ("user", GO_ON), sum, *OUT]

    calls, answer = await converse(GO_ON, tools, dialect, history)

    assert calls == []
    assert answer == "The number of customers is **40**. The result is **6** (`40 * 15 / 100`)."


async def test_an_interrupted_step_is_repeated(dialect, tools):
    cut = (CALCULATOR, '{"expression": "3480 * 12.5 / 100"}', INTERRUPTED)
    history = [("user", SUM), cut, *OUT]

    assert await converse(GO_ON, tools, dialect, history) == (
        [(CALCULATOR, "3480 * 12.5 / 100")],
        ANSWER,
    )


async def test_the_last_unanswered_question_is_continued(dialect, tools):
    history = [
        *[("user", "6 * 7"), *OUT],
        *[("user", SUM), FOUND_SUM, *OUT],
        *[
            ("user", "How many products are there?"),
            ("assistant", "There are **3**."),
        ],
    ]

    assert await converse(GO_ON, tools, dialect, history) == ([], ANSWER)


async def test_nothing_is_continued_when_everything_is_answered(dialect, tools):
    history = [("user", SUM), FOUND_SUM, *OUT, ("user", GO_ON), ("assistant", ANSWER)]

    calls, answer = await converse(GO_ON, tools, dialect, history)

    assert calls == []
    assert "435" not in answer
    assert "rule-based demo model" in answer


async def test_a_follow_up_refers_to_the_question_not_to_continue(dialect, tools):
    history = [
        *[("user", "What was the revenue in 2025?"), *OUT],
        *[("user", GO_ON), ("assistant", "It was 250.")],
    ]

    _, answer = await converse("And in 2026?", tools, dialect, history)

    assert answer == "The revenue in 2026 is **8,609.50**."


@pytest.mark.parametrize("text", ["Continue the poem", "続けて注文した顧客は？", "6 * 7", ""])
def test_a_new_question_is_not_read_as_continue(text):
    assert not Question(text).is_continue


@pytest.mark.parametrize("language", one_in(2, ["en", "ja"]))
@pytest.mark.parametrize(("question", "answer"), [(SUM, ANSWER), (SUM_JA, ANSWER_JA)])
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("agent", "run_executor")
async def test_the_continue_button_leads_to_an_answer(language, question, answer, dialect):
    await Agent.objects.aupdate(max_steps=1, dialect=dialect)
    stopped = await run_question(question)
    with translation.override(language):
        wish = translation.gettext("Continue where you stopped.")

    went_on = await run_question(wish, history=await sync_to_async(transcript)(stopped))

    assert stopped.stopped_reason == "max_steps_reached"
    assert went_on.answer == answer
