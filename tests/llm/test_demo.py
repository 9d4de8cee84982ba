"""The demo model: the shipped list of questions, and its streaming."""

import json
import re
import time
from pathlib import Path

import pytest
from django.utils import translation

from agents.catalog.samples import sample_data, sample_questions
from agents.engine.events import EventType
from agents.engine.tool import ToolResult, specification
from agents.engine.turn import assemble
from agents.llm.demo import DEMO_LABEL, arithmetic, conversation, intents
from agents.llm.demo.conversation import Offer, Question, Situation
from agents.llm.demo.model import PIECE, decide
from agents.llm.demo.results import ADD_MODEL, fallback, introduction, offered_examples
from agents.tools.calculator import CalculatorTool
from agents.tools.database.tool import DatabaseTool
from agents.web.presentation.markdown import render_markdown
from tests.llm import demo_shop
from tests.llm.demo_shop import TODAY, converse, demo, seeded_agent
from tests.sampling import one_in

LIST = Path(__file__).with_name("demo_questions.json")
QUESTIONS = json.loads(LIST.read_text("utf-8"))
FALLBACK = ("I can't answer this because", "この質問には答えられません")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "shop.sqlite3"
    sample_data.create_database(path, TODAY)
    return path


@pytest.fixture(scope="module")
def tools(shop):
    return demo_shop.tools(shop)


async def run_summary(agent, question):
    """Return what a whole run did: its own tool calls, plans, end and answer."""
    events = [event async for event in agent.stream(question)]
    calls = [
        e.data for e in events if e.type is EventType.TOOL_CALL and e.data.get("parent") is None
    ]
    last = events[-1].data
    return {
        "tools": [call["function"]["name"] for call in calls],
        "plans": [len(e.data["steps"]) for e in events if e.type is EventType.PLAN],
        "ends": last.get("stopped_reason"),
        "answer": last.get("answer") or last.get("detail", ""),
    }


@pytest.mark.parametrize(
    "asked", one_in(10, QUESTIONS), ids=lambda a: f"{a['agent']}: {a['question'][:40]}"
)
async def test_every_listed_question_is_answered(asked, shop):
    dialect = "react" if len(asked["question"]) % 2 else "native"

    did = await run_summary(seeded_agent(asked["agent"], shop, dialect), asked["question"])

    for fact in ("tools", "plans", "ends"):
        assert did[fact] == asked.get(fact, did[fact])
    assert [words for words in asked["says"] if words not in did["answer"]] == []
    in_japanese = re.search("です|ます|ません|出典|件）：|商品：|意見が", did["answer"])
    assert bool(in_japanese) == Question(asked["question"]).is_japanese


def test_the_list_is_long_enough_and_in_both_languages():
    japanese = [each for each in QUESTIONS if Question(each["question"]).is_japanese]

    assert len(QUESTIONS) >= 80
    assert len(japanese) >= 30
    assert len({(each["agent"], each["question"]) for each in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_every_suggested_question_is_answered(language, tools):
    with translation.override(language):
        suggested = [translation.gettext(text) for text in sample_questions.BY_TOOL.values()]
    own = [words for key, words in conversation.SENTENCES.items() if key.startswith("example_")]
    suggested += [words[language == "ja"] for words in own if "{" not in words[0]]

    for question in suggested:
        calls, answer = await converse(question, tools)
        assert len(calls) == 1, question
        assert not any(words in answer for words in FALLBACK), question


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", one_in(2, sample_questions.BY_AGENT))
async def test_the_sample_agents_answer_their_example_questions(name, language, shop):
    with translation.override(language):
        suggested = [translation.gettext(text) for text in sample_questions.BY_AGENT[name]]

    for question in suggested:
        did = await run_summary(seeded_agent(name, shop, "native"), question)
        assert did["ends"] == "completed", question
        assert not any(words in did["answer"] for words in FALLBACK), question


async def test_every_question_has_the_same_answer_in_both_dialects(tools):
    for question in [each["question"] for each in QUESTIONS if each["agent"] == "helper"][::6]:
        assert await converse(question, tools) == await converse(question, tools, "react")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What was the revenue in March 2026?", "The revenue in March 2026 is **994**."),
        ("2026年5月の売上は？", "2026年5月の売上は **1,079** です。"),
        ("top 4 customers by revenue in 2025", "| Customer | Revenue |"),
        ("What is 7.5% of 1200?", "**90** (`1200 * 7.5 / 100`)"),
        ("revenue by country last year", "for **Japan** (**"),
        ("Which month had the most orders in 2025?", "is **December 2025**, with **44**"),
        ("How many products cost less than 15?", "is **4**."),
        ("大阪の注文は何件？", "大阪の注文数は **"),
    ],
)
async def test_questions_work_with_other_numbers_months_and_names(question, said, tools):
    assert said in (await converse(question, tools))[1]


@pytest.mark.parametrize(
    "question",
    ["Write a poem about the sea", "Send an e-mail to Aiko", "翻訳してください", "俳句を一句"],
)
async def test_other_questions_get_a_hint_to_connect_a_real_model(question, tools):
    calls, answer = await converse(question, tools)

    assert calls == []
    assert "\n" not in answer
    assert any(words in answer for words in FALLBACK)
    assert "12.5%" in answer
    assert f'<a href="{ADD_MODEL}"' in render_markdown(answer)


def test_the_hint_links_to_the_form_for_a_new_model():
    from django.urls import reverse

    assert reverse("admin:agents_modelconnection_add") == ADD_MODEL


@pytest.mark.parametrize("question", ["Tell me a joke.", "冗談を言って。"])
def test_who_cannot_connect_a_model_is_not_sent_to_the_console(question):
    situation = Situation(question=Question(question), administrator="")
    page = situation._replace(administrator="https://help.example.org")

    for write in (fallback, introduction):
        assert "](" not in write(situation)
        assert "](https://help.example.org)" in write(page)


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_the_database_tool_accepts_every_kind_of_query(dialect, shop):
    own = [DatabaseTool(f"sqlite:///{shop}"), CalculatorTool()]

    calls, answer = await converse("What share of revenue came from Tokyo?", own, dialect)

    assert [name for name, _ in calls] == ["database", "database", "calculator"]
    assert "**1,401**" in answer
    assert "**6.9%**" in answer


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("half of 90", "90 / 2"),
        ("subtract 5 from 12", "12 - 5"),
        ("200 is what percent of 800", "200 / 800 * 100"),
        ("the average of 10, 20 and 30", "(10 + 20 + 30) / 3"),
        ("increase 200 by 15%", "200 * (100 + 15) / 100"),
        ("twenty-five times four", "25 * 4"),
        ("10% of 20% of 50", "(50 * 20 / 100) * 10 / 100"),
        ("-5 + 3", "-5 + 3"),
        ("10 - 3 - 2", "10 - 3 - 2"),
        ("17 % 5", "17 % 5"),
        ("2 ** 3 ** 2", "2 ** 3 ** 2"),
        ("3に4を足して12をかけると", "(3 + 4) * 12"),
        ("3と4の和", "3 + 4"),
        ("200は800の何%ですか", "200 / 800 * 100"),
        ("1200円の10%増し", "1200 * (100 + 10) / 100"),
        ("3万円の8%", "30000 * 8 / 100"),
        ("what is 15% of that", "that * 15 / 100"),
        ("その15%は", "that * 15 / 100"),
    ],
)
def test_arithmetic_in_words_becomes_an_expression(text, expression):
    assert arithmetic.find(text).expression == expression


@pytest.mark.parametrize(
    "text",
    [
        "orders since 2025-01-15",
        "explain in 2-3 sentences how this works",
        "how does gpt-4 think",
        "call me at 03-1234-5678",
        "top 5 products by revenue",
        "support 24/7 for every paying customer",
        "2 + 5k",
    ],
)
def test_numbers_alone_are_not_a_calculation(text):
    assert arithmetic.find(text) is None


async def test_quotations_are_cited_by_number(tools):
    _, answer = await converse("How do I stop a run?", tools)

    assert answer.split("\n\n")[0].endswith(" [1]")


async def test_only_offered_tools_are_called(tools):
    calls, answer = await converse("How many customers are there?", tools[:1])
    _, sum = await converse("What is 6 times 7?", tools[2:])

    assert calls == []
    assert "12.5% of 3480" in answer
    assert "by month" not in answer
    assert "rule-based demo model" in sum


async def test_a_database_with_other_tables_is_not_queried_for_the_shop(tools):
    staff = Offer("database", "employees(id INT, name TEXT)", DatabaseTool.parameters)
    situation = Situation(question=Question("How many customers are there?"), tools=(staff,))

    turn = decide(situation, TODAY)

    assert turn.tool == ""
    assert "rule-based demo model" in turn.answer


async def test_a_tool_error_is_included_in_the_answer(tools):
    calls, answer = await converse("1 / 0", tools)

    assert calls == [("calculator", "1 / 0")]
    assert answer == "The `calculator` tool failed: Division by zero."


async def test_a_follow_up_uses_the_previous_question(tools):
    history = [("user", "What was the revenue in 2025?"), ("assistant", "It was 8,608.")]

    calls, answer = await converse("And in 2026?", tools, history=history)

    assert len(calls) == 1
    assert answer == "The revenue in 2026 is **8,609.50**."


async def chunks_of(messages, **more):
    return [chunk async for chunk in demo().stream(model="demo", messages=messages, **more)]


async def test_a_call_is_streamed_as_openai_streams_it(tools):
    specs = [specification(tool) for tool in tools]
    chunks = await chunks_of([{"role": "user", "content": "12 times 7"}], tools=specs)
    turn = assemble(chunks)

    assert turn.reasoning == "This is arithmetic, so I use the calculator."
    assert turn.tool_calls[0].input == {"expression": "12 * 7"}
    assert turn.finish_reason == "tool_calls"
    assert turn.content == ""
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == sum(
        chunks[-1]["usage"][name] for name in ("prompt_tokens", "completion_tokens")
    )
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_the_same_conversation_gives_the_same_text_and_ids(tools):
    specs = [specification(tool) for tool in tools]
    first, second = [
        await chunks_of([{"role": "user", "content": "売上合計"}], tools=specs) for _ in "12"
    ]

    assert [c["choices"] for c in first] == [c["choices"] for c in second]


async def test_without_tools_the_answer_says_that_it_is_a_demo():
    turn = assemble(await chunks_of([{"role": "user", "content": "Who wrote Genji?"}]))

    assert "not AI" in turn.content
    assert ADD_MODEL in turn.content
    assert turn.finish_reason == "stop"
    assert DEMO_LABEL == "Demo model (rules, no AI)"


@pytest.mark.parametrize("offered", [False, True])
async def test_unrequested_rows_in_the_history_are_shown_as_a_table(offered, tools):
    specs = [specification(tool) for tool in tools] if offered else None
    call = {"name": "database", "arguments": '{"sql": "SELECT 1"}'}
    messages = [
        {"role": "user", "content": "Show it to me, please"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": call}]},
        {"role": "tool", "tool_call_id": "a", "content": '{"columns": ["x"], "rows": [[7]]}'},
    ]

    turn = assemble(await chunks_of(messages, tools=specs))

    assert turn.content == "| X |\n| ---: |\n| 7 |"


@pytest.mark.parametrize("text", ["Two  words\n\n- and more", "今年の 売上は **5** です。", ""])
def test_the_chunks_of_a_text_add_up_to_the_text(text):
    assert "".join(PIECE.findall(text)) == text
    assert all(len(piece.strip()) < 20 for piece in PIECE.findall(text))


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "Be brief."}]])
async def test_a_conversation_without_a_question_gets_an_introduction(messages):
    turn = assemble(await chunks_of(messages))

    assert "demo model" in turn.content


@pytest.mark.parametrize(
    "seed",
    ["(", "1+", "1と", "half of ", "% of ", "売上の", "「", "in A ", "a? ", "ask helper ,"],
)
def test_a_long_strange_question_is_read_quickly(seed, tools):
    offers = [Offer(t.name, t.description, t.parameters) for t in tools]
    task = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    offers.append(Offer("ask_helper", "", task))
    question = Question((seed * 2_000)[:2_000])

    begin = time.process_time()
    decide(Situation(question=question, tools=tuple(offers)), TODAY)

    assert time.process_time() - begin < 2


def test_an_ordinary_question_is_understood_within_milliseconds(tools):
    offers = tuple(Offer(t.name, t.description, t.parameters) for t in tools)
    situation = Situation(question=Question("Which five products sold best?"), tools=offers)
    decide(situation, TODAY)

    begin = time.process_time()
    for _ in range(20):
        decide(situation, TODAY)

    assert (time.process_time() - begin) / 20 < 0.05


def test_every_sentence_has_both_languages_and_the_same_fields():
    for key, (english, japanese) in conversation.SENTENCES.items():
        fields = [set(re.findall(r"\{(\w+)\}", text)) for text in (english, japanese)]
        assert fields[0] ^ fields[1] <= {"of", "counter"}, key


@pytest.mark.parametrize("name", intents.LIBRARY["intents"])
def test_every_phrasing_is_matched_to_its_intent(name):
    for phrasing in intents.LIBRARY["intents"][name]:
        slots = intents.read(Question(phrasing), TODAY)
        assert next(intents.matches(slots), None) == name, phrasing


@pytest.mark.parametrize("tools", [(), (Offer("search"),)])
@pytest.mark.parametrize(
    ("wish", "rows", "answer"),
    [
        (
            "Say what these figures show:",
            [["抹茶の箱", 3], ["Tea", 9.5]],
            "**Tea** has the highest total, with **9.50**.",
        ),
        (
            "次の数字から分かることを述べてください:",
            [["Tea", 9], ["Cup", 3], ["Pot", 4]],
            "最も多いのは **Tea**（**9**）です。",
        ),
        ("Explain this:", [], "There are no figures here."),
        ("Explain this:", [["a", "b"]], "| a | b |"),
    ],
)
def test_numbers_in_the_question_are_summarized_without_a_tool(wish, rows, answer, tools):
    given = json.dumps({"columns": ["name", "total"], "rows": rows}, ensure_ascii=False)
    situation = Situation(question=Question(f"{wish} {given}"), tools=tools)

    assert answer in decide(situation, TODAY).answer


async def test_a_failed_query_keeps_earlier_results(tools):
    class Broken(CalculatorTool):
        async def execute(self, input, /):
            return ToolResult(error="It is broken.", mendable=True)

    _, answer = await converse("What is 10% of total revenue?", [Broken(), *tools[1:]])

    assert answer == (
        "The revenue is **20,233**.\n\nThe `calculator` tool failed: It is broken."
    )


def test_the_text_of_attached_files_is_not_part_of_the_question():
    asked = "<attached_files>\nWeeks of leave: 18\n</attached_files>\n\nHow many weeks?"

    [exchange] = conversation._exchanges([{"role": "user", "content": asked}])

    assert exchange.question.text == "How many weeks?"


@pytest.mark.parametrize("question", ["Tell me a joke.", "冗談を言って。"])
def test_the_examples_of_a_dead_end_can_be_offered_as_buttons(question):
    situation = Situation(question=Question(question), tools=(Offer("calculator"),))
    japanese = situation.question.is_japanese

    examples = offered_examples(fallback(situation))

    assert examples == [conversation.SENTENCES["example_calculator"][japanese]]
    assert offered_examples(introduction(situation)) == []
    assert offered_examples(fallback(situation._replace(tools=()))) == []
