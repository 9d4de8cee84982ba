"""The demo model plans, checks and answers: whole runs over the sample shop and a handbook."""

from datetime import date

import pytest

from agents import samples
from agents.engine.approval import AskPerson
from agents.engine.events import Type
from agents.engine.fallback import FallbackStrategy
from agents.engine.guardrails import Guardrails
from agents.engine.orchestrator import Orchestrator
from agents.engine.planner import ReActPlanner
from agents.engine.tool import ToolRegistry
from agents.tools.calculator import CalculatorTool
from agents.tools.search import Passage, SearchTool
from tests.agents.test_demo_model import ShopTool, demo

TODAY = date(2026, 11, 15)
SEASONS = (
    Passage(
        document="Using the chat",
        source="using.md",
        heading="Why do the sample shop's sales differ from month to month?",
        chunk=1,
        text="The shop sells gifts, so its revenue is highest in December.",
    ),
    Passage(
        document="チャットの使い方",
        source="ja/using.md",
        heading="サンプルの店の売上は、なぜ月によって違うのですか？",
        chunk=1,
        text="贈り物の店なので、売上は12月に最も多くなります。",
    ),
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "shop.sqlite3"
    samples.make_database(path, TODAY)
    return path


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


@pytest.fixture
def run(shop, dialect):
    """A whole run of an agent that works by a plan, as its events."""

    async def find(query, top_k):
        return SEASONS[:top_k]

    async def whole(question, **options):
        tools = [CalculatorTool(), ShopTool(shop), SearchTool(find), AskPerson()]
        parts = (ToolRegistry(tools), Guardrails(), FallbackStrategy(pause=0))
        planner = ReActPlanner(demo(), "demo", dialect=dialect)
        agent = Orchestrator(planner, *parts, name="planner", **options)
        return [event async for event in agent.stream(question)]

    return whole


def of(events, type):
    return [event.data for event in events if event.type is type]


def plans(events):
    return [{step["name"]: step for step in plan["steps"]} for plan in of(events, Type.PLAN)]


def checks(events):
    return [check["is_met"] for check in of(events, Type.EVALUATION)]


def ended(events):
    return events[-1].data["stopped_reason"], events[-1].data.get("detail", "")


async def test_two_best_months_are_compared_and_the_difference_explained(run):
    events = await run("compare this year's best month with last year's and explain")

    (plan,) = plans(events)
    assert [*plan] == [
        "best month by revenue in 2026",
        "best month by revenue in 2025",
        "difference",
        "change in percent",
        "orders and their average",
        "look up: why revenue differs from month to month",
    ]
    assert checks(events) == [True] * 5
    assert events[-1].data["answer"] == (
        "The best month by revenue in 2026 is **July 2026**, with **1,139**. "
        "The best month by revenue in 2025 is **December 2025**, with **1,741**.\n\n"
        "**December 2025** is ahead: July 2026 is **602** below December 2025 (-34.6%). "
        "2026 is not over yet, so this may still change.\n\n"
        "July 2026 had **26** orders of 43.81 on average; December 2025 had **44** orders of "
        "39.57 on average. So the difference comes mostly from the number of orders.\n\n"
        "The shop sells gifts, so its revenue is highest in December. [1]\n\n"
        "Sources:\n- [1] Using the chat › Why do the sample shop's sales differ from month to "
        "month? (using.md #1)"
    )


async def test_two_best_months_are_compared_in_japanese(run):
    events = await run("今年と去年の最高の月を比べて、理由も説明して")

    (plan,) = plans(events)
    assert [*plan][:3] == ["2026年の売上が最も多い月", "2025年の売上が最も多い月", "差"]
    assert events[-1].data["answer"] == (
        "2026年の売上が最も多い月は **2026年7月**（**1,139**）です。"
        "2025年の売上が最も多い月は **2025年12月**（**1,741**）です。\n\n"
        "多かったのは **2025年12月** です。2026年7月は2025年12月を **602** 下回りました"
        "（-34.6%）。2026年はまだ終わっていないため、変わる可能性があります。\n\n"
        "2026年7月は注文 **26** 件・平均 43.81、2025年12月は注文 **44** 件・平均 39.57でした。"
        "違いは主に注文数によるものです。\n\n"
        "贈り物の店なので、売上は12月に最も多くなります。 [2]\n\n"
        "出典:\n- [2] チャットの使い方 › サンプルの店の売上は、なぜ月によって違うのですか？ "
        "(ja/using.md #1)"
    )


async def test_what_does_not_wait_for_anything_is_done_side_by_side(run):
    events = await run("Compare this year's revenue with last year's")

    (plan,) = plans(events)
    assert all(step["parallel"] for step in plan.values())
    assert plan["difference"]["depends_on"] == ["revenue in 2026", "revenue in 2025"]
    assert "depends_on" not in plan["revenue in 2026"]


@pytest.mark.parametrize(
    ("question", "kept", "lost", "instead", "words"),
    [
        (
            "Compare this year's revenue with 2019",
            "revenue in 2026",
            "revenue in 2019",
            "revenue in 2025",
            "Nothing was found for the revenue in 2019, so the revenue in 2025 is taken",
        ),
        (
            "今年の売上を2019年と比べて",
            "2026年の売上",
            "2019年の売上",
            "2025年の売上",
            "データがありませんでした: 2019年の売上。代わりに2025年の売上を使います。",
        ),
    ],
)
async def test_a_year_without_data_fails_its_check_and_another_takes_its_place(
    run, question, kept, lost, instead, words
):
    events = await run(question)

    first, second = plans(events)
    assert lost in first
    assert instead in second
    assert first[kept] == second[kept]
    changes = of(events, Type.PLAN)[1]["changes"]
    assert (changes[kept], changes[lost], changes[instead]) == ("kept", "removed", "added")
    assert checks(events).count(False) == 1
    assert ended(events)[0] == "completed"
    assert events[-1].data["answer"].startswith(words)


@pytest.mark.parametrize(
    ("greeting", "words"), [("Hello", "works by a plan"), ("こんにちは", "計画を立て直します")]
)
async def test_a_greeting_needs_no_steps(run, greeting, words):
    events = await run(greeting)

    assert plans(events) == [{}]
    assert not of(events, Type.TOOL_CALL)
    assert words in events[-1].data["answer"]
