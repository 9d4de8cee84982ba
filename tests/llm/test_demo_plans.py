"""The demo model plans, checks and answers: whole runs over the sample shop."""

import json
from datetime import date
from io import StringIO

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from agents.catalog.samples import sample_data
from agents.engine.events import EventType
from agents.engine.guardrails.checks import Guardrails
from agents.engine.json_schema import violations
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.loop.tool_calls.approval import AskPersonTool
from agents.engine.loop.tool_calls.tool_fallback import FallbackStrategy
from agents.engine.material import Passage
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.plans.definition.plan import ExecutionPlan
from agents.engine.plans.definition.validation import find_problems
from agents.engine.plans.merging.answer_merging import QUESTION_TEMPLATE
from agents.engine.plans.orchestrator import RESULTS_PROMPT, Orchestrator
from agents.engine.plans.plan_writer import PLAN_SCHEMA
from agents.engine.state import AgentState
from agents.engine.tool import ToolRegistry, ToolResult, specification
from agents.llm.demo import panel, planner
from agents.llm.demo.conversation import Offer
from agents.management.commands import seed_demo
from agents.models import Run
from agents.tools.calculator import CalculatorTool
from agents.tools.search import SearchTool
from tests.llm.demo_shop import TODAY, ShopTool, demo
from tests.sampling import one_in

TEXT = {"type": "string"}
ROW = {"type": "object", "properties": {"product": TEXT}, "required": ["product"]}
PIECES = (
    *("compare", "this year", "last year", "2019", "best month", "revenue", "orders", "and"),
    *("explain", "?", "why", "ask my manager whether", "send", "Tokyo", "Osaka", "top 3"),
    *("ask legal to", "ask the legal team about"),
    *("share", "average", "monthly", "10% of", "how many", "customers", "${x}", '"Tea"', "\n"),
    *(
        "今年",
        "去年",
        "の売上",
        "を比べて",
        "、理由も",
        "上司に",
        "聞いて",
        "東京と大阪",
        "は？",
    ),
)
SEASONS = (
    Passage(
        title="Using the chat",
        path="using.md",
        heading="Why do the sample shop's sales differ from month to month?",
        ordinal=1,
        text="The shop sells gifts, so its revenue is highest in December.",
    ),
    Passage(
        title="チャットの使い方",
        path="ja/using.md",
        heading="サンプルの店の売上は、なぜ月によって違うのですか？",
        ordinal=1,
        text="贈り物の店なので、売上は12月に最も多くなります。",
    ),
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "shop.sqlite3"
    sample_data.create_database(path, TODAY)
    return path


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


@pytest.fixture
def run(shop, dialect):
    """Return the events of a whole run by a plan."""

    async def find(query, top_k):
        return SEASONS[:top_k]

    async def whole(question, *, state=None, tools=None, **options):
        person = AskPersonTool(options.get("people", ()), asker_approves=False)
        own = [CalculatorTool(), ShopTool(shop), SearchTool(find), person]
        parts = (ToolRegistry(tools or own), Guardrails(), FallbackStrategy(pause=0))
        planner = ReActPlanner(demo(), "demo", dialect=dialect)
        agent = Orchestrator(planner, *parts, name="planner", **options)
        return [event async for event in agent.stream(question, state)]

    return whole


def of(events, type):
    return [event.data for event in events if event.type is type]


def plans(events):
    return [
        {step["name"]: step for step in plan["steps"]} for plan in of(events, EventType.PLAN)
    ]


def checks(events):
    return [check["is_met"] for check in of(events, EventType.EVALUATION)]


def stop_reason(events):
    return events[-1].data["stopped_reason"], events[-1].data.get("detail", "")


async def test_two_best_months_are_compared_and_the_difference_explained(run):
    events = await run("compare this year's best month with last year's and explain")

    (plan,) = plans(events)
    assert [*plan] == [
        "best month by revenue in 2026",
        "best month by revenue in 2025",
        "difference",
        "change in percent",
        "number and average",
        "search: why revenue differs from month to month",
    ]
    assert checks(events) == [True] * 5
    assert events[-1].data["answer"] == (
        "The best month by revenue in 2026 is **July 2026**, with **1,139**. "
        "The best month by revenue in 2025 is **December 2025**, with **1,741**. "
        "The difference is **-602** (-34.6%). 2026 isn't over yet.\n\n"
        "| Month | Orders | Average amount |\n| --- | ---: | ---: |\n"
        "| December 2025 | 44 | 39.57 |\n| July 2026 | 26 | 43.81 |\n\n"
        "The shop sells gifts, so its revenue is highest in December. [1]"
    )


async def test_two_best_months_are_compared_in_japanese(run):
    events = await run("今年と去年の最高の月を比べて、理由も説明して")

    (plan,) = plans(events)
    assert [*plan][:3] == ["2026年の売上が最も多い月", "2025年の売上が最も多い月", "差"]
    assert (
        events[-1]
        .data["answer"]
        .startswith(
            "2026年の売上が最も多い月は **2026年7月**（**1,139**）です。"
            "2025年の売上が最も多い月は **2025年12月**（**1,741**）です。"
            "差は **-602**（-34.6%）です。2026年はまだ終わっていません。\n\n"
            "| 月 | 注文数 | 平均額 |\n"
        )
    )
    assert "贈り物の店なので、売上は12月に最も多くなります。 [2]" in events[-1].data["answer"]


async def test_independent_steps_run_in_parallel(run):
    events = await run("Compare this year's revenue with last year's")

    (plan,) = plans(events)
    assert all(step["parallel"] for step in plan.values())
    assert plan["difference"]["depends_on"] == ["revenue in 2026", "revenue in 2025"]
    assert "depends_on" not in plan["revenue in 2026"]


@pytest.mark.parametrize(
    ("question", "kept", "lost", "instead", "words"),
    one_in(
        4,
        [
            (
                "Compare this year's revenue with 2019",
                "revenue in 2026",
                "revenue in 2019",
                "revenue in 2025",
                "No data was found for revenue in 2019, so revenue in 2025 is used instead.",
            ),
            (
                "今年の売上を2019年と比べて",
                "2026年の売上",
                "2019年の売上",
                "2025年の売上",
                "2019年の売上のデータが見つからないため、2025年の売上を使います。",
            ),
        ],
    ),
)
async def test_a_year_without_data_fails_its_check_and_is_replaced(
    run, question, kept, lost, instead, words
):
    events = await run(question)

    first, second = plans(events)
    assert lost in first
    assert instead in second
    assert first[kept] == second[kept]
    changes = of(events, EventType.PLAN)[1]["changes"]
    assert (changes[kept], changes[lost], changes[instead]) == ("kept", "removed", "added")
    assert checks(events).count(False) == 1
    assert stop_reason(events)[0] == "completed"
    assert events[-1].data["answer"].startswith(words)


@pytest.mark.parametrize(
    ("greeting", "words"),
    [("Hello", "writes a plan first"), ("こんにちは", "プランを立て直します")],
)
async def test_a_greeting_needs_no_steps(run, greeting, words):
    events = await run(greeting)

    assert plans(events) == [{}]
    assert not of(events, EventType.TOOL_CALL)
    assert words in events[-1].data["answer"]


WIDER = [
    ("What was the revenue in 2019?", "revenue by year", "| 2025 | 8,608.00 |"),
    ("2019年の売上は？", "年別の売上", "| 2025 | 8,608.00 |"),
    ("What was the best month in 2019?", "revenue by month", "**December 2024**"),
    ("What is 10% of the revenue in 2019?", "revenue by year", "| 2025 | 8,608.00 |"),
]


@pytest.mark.parametrize(
    ("question", "instead", "words"), one_in(4, WIDER), ids=lambda v: v[:20]
)
async def test_when_nothing_is_found_the_next_plan_searches_wider(
    run, question, instead, words
):
    events = await run(question)

    first, second = plans(events)
    assert instead not in first
    assert instead in second
    assert checks(events)[0] is False
    assert stop_reason(events)[0] == "completed"
    assert instead in events[-1].data["answer"]
    assert words in events[-1].data["answer"]


IN_VAIN = [
    ("Revenue of Unobtainium", 1, "No data was found for: revenue for Unobtainium."),
    ("Compare revenue in Tokyo with Seoul", 1, "No data was found for: revenue in Seoul."),
    ("東京とソウルの売上を比べて", 1, "データが見つかりません：ソウルの売上。"),
]


@pytest.mark.parametrize(("question", "tried", "reason"), IN_VAIN, ids=lambda v: str(v)[:20])
async def test_when_nothing_is_left_to_try_the_run_is_cancelled_with_a_reason(
    run, question, tried, reason
):
    events = await run(question)

    assert len(plans(events)) == tried
    assert stop_reason(events)[0] == "cancelled"
    assert reason in stop_reason(events)[1]


BEYOND = [
    ("Send an e-mail to Aiko", "I can't answer this because I'm a rule-based demo model"),
    ("佐藤さんにメールを送ってください", "この質問には答えられません"),
    ("write a poem", "or connect a model."),
]


@pytest.mark.parametrize(("question", "reason"), BEYOND, ids=lambda v: v[:20])
async def test_a_task_that_no_tool_can_do_is_not_started(run, question, reason):
    events = await run(question)

    assert not of(events, EventType.TOOL_CALL)
    assert stop_reason(events)[0] == "cancelled"
    assert reason in stop_reason(events)[1]


async def test_two_questions_are_two_steps_answered_in_order(run):
    events = await run("How many customers are there? Which product sold most this year?")

    (plan,) = plans(events)
    assert [*plan] == ["number of customers", "best product by revenue in 2026"]
    assert events[-1].data["answer"] == (
        "The number of customers is **36**.\n\n"
        "The best product by revenue in 2026 is **Tenmoku Tea Bowl**, with **1,156**."
    )


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (
            "Compare this year's revenue with last year's and ask my manager whether we grow",
            "Please ask your manager whether we grow, then enter the answer.",
        ),
        (
            "今年の売上を去年と比べて、上司に値上げしてよいか聞いて",
            "上司に「値上げしてよいか」を確認し、回答を入力してください。",
        ),
    ],
)
async def test_approval_is_requested_after_the_needed_data_is_found(run, question, asked):
    events = await run(question)

    *found, last = plans(events)[0].values()
    assert last["ask"] == asked
    assert last["depends_on"] == [step["name"] for step in found]
    assert len(found) == 4
    assert events[-1].type is EventType.RUN_PAUSED


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (
            "Ask legal whether we may keep addresses for ten years",
            "Please say whether we may keep addresses for ten years.",
        ),
        ("How many customers are there? Ask legal to check it", "Please say to check it."),
        ("ask legal about ${x} {y}", "Please say about ${x} {y}."),
        (
            "法務に住所を10年間保存してよいか聞いて",
            "住所を10年間保存してよいか、教えてください。",
        ),
    ],
)
async def test_an_expert_is_asked_when_someone_has_the_role(run, question, asked):
    events = await run(question, people={"legal", "法務"})

    *found, last = plans(events)[0].values()
    assert last["role"].lower() in {"legal", "法務"}
    assert last.get("depends_on", []) == [step["name"] for step in found]
    (wait,) = of(events, EventType.APPROVAL_REQUESTED)
    assert json.loads(wait["function"]["arguments"])["question"] == asked
    assert events[-1].type is EventType.RUN_PAUSED


async def test_the_reason_for_having_no_plan_is_plain_text(run):
    reason, why = stop_reason(
        await run("Ask legal whether we may keep addresses for ten years")
    )

    assert reason == "cancelled"
    assert why.startswith("I can't answer this")
    assert "](" not in why


async def test_a_follow_up_is_planned_with_the_previous_question(run):
    state = AgentState()
    state.add_message("user", "What was the revenue this year?")
    state.add_message("assistant", "The total revenue in 2026 is **8,609.50**.")

    events = await run("And last year?", state=state)

    assert [*plans(events)[0]] == ["revenue in 2025"]
    assert events[-1].data["answer"] == "The revenue in 2025 is **8,608**."


async def test_the_answer_can_have_an_output_schema(run):
    table = {"type": "array", "items": ROW}
    report = {"type": "object", "properties": {"title": TEXT, "rows": table, "note": TEXT}}

    events = await run("top 2 products by revenue", output=OutputSchema(report))

    assert events[-1].data["output"]["title"] == "top 2 products by revenue"
    assert events[-1].data["output"]["rows"][0] == {"product": "Arita Porcelain Cup"}


async def test_a_failed_tool_is_given_as_the_reason(run, shop):
    class Gone(ShopTool):
        async def execute(self, input, /):
            return ToolResult(error="The database is gone.")

    events = await run("What was the revenue in 2025?", tools=[Gone(shop)])

    assert len(plans(events)) == 1
    assert stop_reason(events)[0] == "cancelled"
    assert "The database is gone." in stop_reason(events)[1]


async def test_text_that_looks_like_a_reference_stays_text(run):
    events = await run("How do I write ${steps.a.output} in a plan?")

    assert stop_reason(events)[0] == "completed"
    (call,) = of(events, EventType.TOOL_CALL)
    assert "${steps.a.output}" in call["function"]["arguments"]


@pytest.fixture(scope="module")
def offers(shop):
    tools = [CalculatorTool(), ShopTool(shop), SearchTool(None)]
    about = (specification(tool)["function"] for tool in tools)
    return {each["name"]: Offer(**each) for each in about}


@given(text=st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join))
def test_every_question_gets_an_executable_plan(text, offers):
    tools = "\n".join(
        f"- {offer.name}: {offer.description}\n  arguments: {json.dumps(offer.parameters)}"
        for offer in offers.values()
    )
    messages = [
        {"role": "system", "content": f"Tools:\n{tools}\n\nAgents: none\n\nRoles: legal\n"},
        {"role": "user", "content": f"Question: {text}"},
    ]

    _, written = planner.write(messages, TODAY)

    assert violations(PLAN_SCHEMA, written) == []
    schemas = {name: offer.parameters for name, offer in offers.items()}
    if written["steps"]:
        assert find_problems(ExecutionPlan.from_dict(written), schemas, (), {"legal"}) == ()


def test_the_experts_answer_is_included():
    messages = [
        {"role": "user", "content": "ask my manager whether we grow"},
        {"role": "user", "content": results_prompt({"ask your manager": "Yes, we do."})},
    ]

    answered = planner.answer(messages, TODAY)

    assert answered.answer == "Your manager says: Yes, we do."


@pytest.mark.parametrize(
    ("answer", "quoted"),
    [
        ("The result is **42** (`6 * 7`).", "The result is 42 (6 * 7)."),
        ("It is **8**: `2 ** 3`, not 6.", "It is 8: 2 ** 3, not 6."),
        ("## It is 42\n\n**Surely.**", "It is 42"),
        ("**It is 42. So it is.**", "It is 42."),
    ],
)
def test_the_members_of_a_panel_are_quoted_without_markdown(answer, quoted):
    who = {"items": {"items": {"enum": ["a", "b"]}}}
    schema = {"properties": {"groups": who, "differences": {}, "heading": {}}}
    answers = f"### a\n\n{answer}\n\n### b\n\nIt is 41."
    asked = QUESTION_TEMPLATE.format(question="What is it?", answers=answers)

    found = panel.compare(schema, [{"role": "user", "content": asked}])

    assert found["differences"] == [f"a: “{quoted}”", "b: “It is 41.”"]


def results_prompt(results):
    parts = "\n\n".join(f"## {name} (done)\n{text}" for name, text in results.items())
    return RESULTS_PROMPT.format(description="A plan.", results=parts)


def check_result(expected, result):
    asked = f"Step: a (database)\nExpected: {expected}\nResult:\n{result}"
    return planner.check([{"role": "user", "content": asked}])


ROWS = '{"columns": ["month", "revenue"], "rows": [["2025-12", 7.5]], "truncated": false}'
EMPTY = '{"columns": ["revenue"], "rows": [[null]], "truncated": false}'


@pytest.mark.parametrize(
    ("expected", "result", "is_met", "reason"),
    [
        ("A figure.", ROWS, True, "The result is as expected."),
        ("数値。", ROWS, True, "期待どおりの結果です。"),
        ("A figure.", EMPTY, False, "The result is empty."),
        ("数値。", EMPTY, False, "結果が空です。"),
        ("A figure above 10", ROWS, False, "The result has no such figure."),
        ("A figure above 0", "nobody knows", False, "The result has no such figure."),
        ("At least 3 rows", ROWS, False, "The result has 1 rows."),
        ("Anything", "Error: It broke.", False, "Error: It broke."),
        ("A passage on tea", "Nothing.", False, "No passage was found."),
    ],
)
def test_a_result_is_judged_by_its_visible_text(expected, result, is_met, reason):
    found = check_result(expected, result)

    assert (found["is_met"], found["reason"]) == (is_met, reason)
    assert bool(found["feedback"]) is not is_met


@pytest.mark.django_db(transaction=True)
def test_the_seeded_planning_agent_works(settings, tmp_path):
    settings.SAMPLE_DATABASE = tmp_path / "shop.sqlite3"
    sample_data.create_database(settings.SAMPLE_DATABASE, date.today())
    seed_demo.make_agents()

    out = StringIO()
    question = f"Compare last year's revenue with {date.today().year - 7}"
    call_command("ask", question, "--agent", "planner", stdout=out, stderr=StringIO())

    run = Run.objects.get()
    kinds = list(run.steps.values_list("kind", flat=True))
    assert run.status == "completed"
    assert kinds.count("plan") >= 2
    assert {"task", "evaluation", "tool"} < set(kinds)
    assert "The difference is" in out.getvalue()
