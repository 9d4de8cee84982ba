"""ReAct text in any variation is parsed, live and afterwards."""

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.engine.errors import PlanParseError
from agents.engine.planner.react_parser import ReactParser, parse_react
from tests.examples import many
from tests.sampling import one_in

ASKED = {"q": "cats"}
USUAL = 'Thought: look it up\nAction: search\nAction Input: {"q": "cats"}'

ACTIONS: dict[str, tuple[str, str, str, Any]] = {
    "the form": (USUAL, "look it up", "search", ASKED),
    "windows lines": (USUAL.replace("\n", "\r\n"), "look it up", "search", ASKED),
    "old mac lines": (USUAL.replace("\n", "\r"), "look it up", "search", ASKED),
    "shouted": (USUAL.upper(), "LOOK IT UP", "SEARCH", {"Q": "CATS"}),
    "blank lines": (USUAL.replace("\n", "\n\n  "), "look it up", "search", ASKED),
    "a thought of several lines": (
        "Thought: a\nb\n\nc\nAction: search\nAction Input: x",
        "a\nb\n\nc",
        "search",
        "x",
    ),
    "bold": (
        '**Thought:** look\n**Action**: search\n**Action Input:** {"q": "cats"}',
        "look",
        "search",
        ASKED,
    ),
    "underlined": ("__Thought__: look\n__Action:__ search", "look", "search", ""),
    "numbered labels": (
        "Thought 1: a\nAction 1: search\nAction Input 1: x\nObservation 1: y",
        "a",
        "search",
        "x",
    ),
    "numbered lines": (
        "1. Thought: a\n2. Action: search\n3) Action Input: x",
        "a",
        "search",
        "x",
    ),
    "headings": ("### Thought\na\n### Action\nsearch\n### Action Input\nx", "a", "search", "x"),
    "full-width colons": ("Thought：a\nAction： search\nAction Input：x", "a", "search", "x"),
    "japanese": (
        '思考：東京の天気を調べる\n行動：search\n行動入力：{"q": "東京の天気"}\n観察：晴れ',
        "東京の天気を調べる",
        "search",
        {"q": "東京の天気"},
    ),
    "japanese, borrowed words": (
        "考え: 調べる\nアクション: 検索\nアクション入力: 東京",
        "調べる",
        "検索",
        "東京",
    ),
    "japanese, in brackets": (
        "【思考】調べる\n【行動】search\n【行動入力】東京\n【観察】晴れ",
        "調べる",
        "search",
        "東京",
    ),
    "japanese, short labels": (
        "思考：調べる\n行動：検索\n入力：東京",
        "調べる",
        "検索",
        "東京",
    ),
    "a made-up observation": (
        USUAL + "\nObservation: cats\nThought: done\nFinal Answer: cats",
        "look it up",
        "search",
        ASKED,
    ),
    "a second thought": (USUAL + "\nThought: and then", "look it up", "search", ASKED),
    "a second action": (
        USUAL + "\nAction: other\nAction Input: y",
        "look it up",
        "search",
        ASKED,
    ),
    "an answer too early": (USUAL + "\nFinal Answer: cats", "look it up", "search", ASKED),
    "an observation before": ("Observation: hm\n" + USUAL, "look it up", "search", ASKED),
    "two thoughts first": ("Thought: a\nThought: b\nAction: x", "a\n b", "x", ""),
    "no thought": ('Action: search\nAction Input: {"q": "cats"}', "", "search", ASKED),
    "a thought without its label": (
        "I look it up.\nAction: search\nAction Input: x",
        "I look it up.",
        "search",
        "x",
    ),
    "a think block": (
        "<think>hm\nAction: no\n</think>\n" + USUAL,
        "look it up",
        "search",
        ASKED,
    ),
    "a think block on the line": ("<think>hm</think>" + USUAL, "look it up", "search", ASKED),
    "the end of a think block": ("hm\n</think>\n" + USUAL, "look it up", "search", ASKED),
    "thinking after the label": (
        "Thought: <thinking>hm</thinking>a\nAction: search",
        "a",
        "search",
        "",
    ),
    "special tokens": (
        "<|im_start|>" + USUAL + "<|im_end|>\n<|eot_id|></s><｜end▁of▁sentence｜><end_of_turn>",
        "look it up",
        "search",
        ASKED,
    ),
    "a fence around it all": (f"```\n{USUAL}\n```", "look it up", "search", ASKED),
    "a named fence around it all": (
        f"\n```text\n\n{USUAL}\n```\n",
        "look it up",
        "search",
        ASKED,
    ),
    "a fence, then an observation": (
        f"```\n{USUAL}\n```\nObservation: cats",
        "look it up",
        "search",
        ASKED,
    ),
    "fences within a fence": (
        '```\nAction: search\nAction Input:\n```json\n{"q": "cats"}\n```\n```',
        "",
        "search",
        ASKED,
    ),
    "fenced labels": (
        "Thought: not\n```\nAction: rm\nAction Input: /\n```\nAction: search\nAction Input: x",
        "not\n```\nAction: rm\nAction Input: /\n```",
        "search",
        "x",
    ),
    "fenced input": (
        'Action: search\nAction Input:\n```json\n{\n  "q": "cats"\n}\n```',
        "",
        "search",
        ASKED,
    ),
    "fenced input on the line": (
        'Action: search\nAction Input: ```json\n{"q": "cats"}\n```\nObservation: x',
        "",
        "search",
        ASKED,
    ),
    "an unclosed fence": (
        'Action: search\nAction Input: ```json\n{"q": "cats"}\nObservation: made up',
        "",
        "search",
        ASKED,
    ),
    "fenced code": (
        "Action: python\nAction Input:\n~~~python\nprint('Action: no')\n~~~",
        "",
        "python",
        "print('Action: no')",
    ),
    "talk below the input": (USUAL + "\n\nNow I wait.", "look it up", "search", ASKED),
    "line breaks in a string": (
        'Action: write\nAction Input: {"text": "a\nb"}',
        "",
        "write",
        {"text": "a\nb"},
    ),
    "input of several lines": (
        "Action: sql\nAction Input: select 1\nfrom t",
        "",
        "sql",
        "select 1\nfrom t",
    ),
    "broken input": ('Action: a\nAction Input: {"q": ', "", "a", '{"q":'),
    "two objects": ('Action: a\nAction Input: {"a": 1}{"b": 2}', "", "a", '{"a": 1}{"b": 2}'),
    "a list": ("Action: a\nAction Input: [1, 2]", "", "a", [1, 2]),
    "a number": ("Action: a\nAction Input: 42", "", "a", 42),
    "no number": ("Action: a\nAction Input: NaN", "", "a", "NaN"),
    "a quoted text": ('Action: a\nAction Input: "cats"', "", "a", "cats"),
    "backticks": ('Action: `search`\nAction Input: `{"q": "cats"}`', "", "search", ASKED),
    "quotes": ('Action: "search".\nAction Input: x', "", "search", "x"),
    "brackets": ("Action: [search]\nAction Input: x", "", "search", "x"),
    "japanese quotes": ("行動：「検索」。\n行動入力：猫", "", "検索", "猫"),
    "the name on the next line": ("Action:\nsearch\nAction Input:\nx", "", "search", "x"),
    "no input": ("Action: now", "", "now", ""),
    "input without its label": ('Action: search\n{"q": "cats"}', "", "search", ASKED),
    "all on one line": ('Action: search Action Input: {"q": "cats"}', "", "search", ASKED),
    "a call": ('Action: search("cats")', "", "search", "cats"),
    "a call with single quotes": ("Action: search('cats')", "", "search", "cats"),
    "a call with names": ('Action: search(q="cats")', "", "search", ASKED),
    "a call with an object": ('Action: search({"q": "cats"})', "", "search", ASKED),
    "a call of nothing": ("Action: now()", "", "now", ""),
    "the paper's form": ("Action: search[black cats]", "", "search", "black cats"),
    "an object behind the name": ('Action: search {"q": "cats"}', "", "search", ASKED),
    "an object in place of the name": (
        'Action:\n```json\n{"action": "search", "action_input": {"q": "cats"}}\n```',
        "",
        "search",
        ASKED,
    ),
    "a short label for the input": ("Action: search\nInput: cats", "", "search", "cats"),
    "everyday words in the input": (
        "Action: write\nAction Input: Dear all,\nanswer: yes",
        "",
        "write",
        "Dear all,\nanswer: yes",
    ),
    "no action at first": (
        "Thought: a\nAction: None\nThought: b\nAction: search\nAction Input: x",
        "a\n b",
        "search",
        "x",
    ),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_is_parsed_from_every_notation(name: str) -> None:
    text, thought, action, action_input = ACTIONS[name]

    plan = parse_react(text)

    assert (plan.thought, plan.action, plan.action_input) == (thought, action, action_input)
    assert plan.final_answer is None
    assert [call.name for call in plan.calls] == [action]


ANSWERS: dict[str, tuple[str, str, str]] = {
    "the form": ("Thought: I know.\nFinal Answer: 42", "I know.", "42"),
    "alone": ("Final Answer: 42", "", "42"),
    "prose": ("It is 42.\n\nBecause.", "", "It is 42.\n\nBecause."),
    "japanese prose": ("答えは42です。", "", "答えは42です。"),
    "japanese": ("思考：わかった\n最終回答：42です。\n以上。", "わかった", "42です。\n以上。"),
    "the beginning of a label": ("Though", "", "Though"),
    "a word that is a label elsewhere": ("Thought is free.", "", "Thought is free."),
    "labels within lines": (
        "My Action: none. A Thought: b.",
        "",
        "My Action: none. A Thought: b.",
    ),
    "bold": ("**Thought:** hm\n**Final Answer:** **42**", "hm", "**42**"),
    "a heading": ("## Final Answer\n\n42", "", "42"),
    "a short label": ("Thought: hm\nAnswer: 42", "hm", "42"),
    "a short japanese label": ("思考: うん\n回答: 42", "うん", "42"),
    "an underscore": ("final_answer: 42", "", "42"),
    "labels in the answer": (
        "Final Answer: write\nThought: a\nAction: b\nObservation: c",
        "",
        "write\nThought: a\nAction: b\nObservation: c",
    ),
    "an answer before an action": ("Final Answer: 42\nAction: x", "", "42\nAction: x"),
    "code": (
        "Final Answer: run\n```python\nprint(42)\n```\nand look.",
        "",
        "run\n```python\nprint(42)\n```\nand look.",
    ),
    "only code": ("```python\nprint(42)\n```", "", "```python\nprint(42)\n```"),
    "code in a fence around it all": (
        "```\nFinal Answer: run\n```\nls\n```\nand look.\n```",
        "",
        "run\n```\nls\n```\nand look.",
    ),
    "a think block": ("<think>Action: x</think>\n\n42", "", "42"),
    "a tag that is spoken of": ("Use the <think> tag.", "", "Use the <think> tag."),
    "a tag in code": ("```\na\n<think>\n```", "", "```\na\n<think>\n```"),
    "a special token": ("Final Answer: 42<|endoftext|>", "", "42"),
    "comparisons": ("Final Answer: a < b <| c", "", "a < b <| c"),
    "no label for the thought": ("I know.\nFinal Answer: 42", "I know.", "42"),
    "no action": ("Thought: hm\nAction: None\nFinal Answer: 42", "hm", "42"),
    "no action, no input": ("Action: N/A\nAction Input: None\nFinal Answer: 42", "", "42"),
    "no action, an input": (
        "Thought: hm\nAction: none\nAction Input: 42 it is",
        "hm",
        "42 it is",
    ),
    "no action, nought": ("Action: none\nAction Input: 0", "", "0"),
    "no action, the rest": ("Action: None\nIt is 42.", "", "It is 42."),
    "the answer as an action": ("Action: Final Answer\nAction Input: 42 it is", "", "42 it is"),
    "the answer as an object": (
        '行動: 最終回答\n行動入力: {"answer": "42です"}',
        "",
        "42です",
    ),
    "the answer on the action's line": ("Action: Final Answer: 42", "", "42"),
    "the paper's form": ("Thought: hm\nAction: Finish[forty-two]", "hm", "forty-two"),
    "an observation of nothing": (
        "Thought: a\nObservation: b\nThought: c\nFinal Answer: 42",
        "a\n c",
        "42",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_parsed_from_every_notation(name: str) -> None:
    text, thought, answer = ANSWERS[name]

    plan = parse_react(text)

    assert (plan.thought, plan.final_answer) == (thought, answer)
    assert (plan.action, plan.calls) == (None, ())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no Action and no Final Answer"),
        (" \r\n\t", "no Action and no Final Answer"),
        ("<|im_end|>", "no Action and no Final Answer"),
        ("<think>hm", "no Action and no Final Answer"),
        ("Observation: it rains", "no Action and no Final Answer"),
        ("Thought: hm", "a Thought, but no Action"),
        ("思考：うーん", "a Thought, but no Action"),
        ("Thought: hm\nAction: None", "a Thought, but no Action"),
        ("Thought: hm\n```\nAction: x\n```", "outside code fences"),
        ("Thought: hm\nAction:", "doesn't name a tool"),
        ("Action: ``\nAction Input: x", "doesn't name a tool"),
        ("Thought: hm\nAction Input: x", "without an Action"),
        ("Thought: hm\nFinal Answer:", "Final Answer is empty"),
    ],
)
def test_a_reply_without_a_decision_gets_instructions(text: str, complaint: str) -> None:
    with pytest.raises(PlanParseError, match=complaint) as caught:
        parse_react(text)

    assert '"Final Answer:"' in str(caught.value)


@pytest.mark.parametrize(
    ("input", "arguments"),
    [
        ('{"q": "猫"}', '{"q": "猫"}'),
        ("猫", '{"input": "猫"}'),
        ("42", '{"input": "42"}'),
        ("[1, 2]", '{"input": "[1, 2]"}'),
        ("null", "{}"),
        ("", "{}"),
    ],
)
def test_the_call_has_the_input_as_its_arguments(input: str, arguments: str) -> None:
    (call,) = parse_react(f"Action: search\nAction Input: {input}").calls

    assert call.arguments == arguments


def test_thinking_is_kept_apart_from_the_thought() -> None:
    plan = parse_react("<think>hm\nhm</think>\nThought: a\nFinal Answer: 42")

    assert plan.thought == "a"
    assert plan.turn.reasoning == "hm\nhm"


def read(pieces: list[str]) -> tuple[ReactParser, str, str]:
    reader = ReactParser()
    shown = [piece for text in pieces for piece in reader.feed(text)] + reader.finish()
    thought, answer = (
        "".join(text for kind, text in shown if kind == wanted)
        for wanted in ("thought", "answer")
    )
    return reader, thought, answer


def test_thoughts_and_answers_are_streamed() -> None:
    reader = ReactParser()

    assert reader.feed("Thou") == []
    assert reader.feed("ght: I kn") == [("thought", "I kn")]
    assert reader.feed("ow.\nFin") == [("thought", "ow.\n")]
    assert reader.feed("al Answer: ") == []
    assert reader.feed("4") == [("answer", "4")]
    assert reader.feed("2 <") == [("answer", "2 ")]
    assert reader.feed("3") == [("answer", "<3")]


def test_prose_is_streamed_as_soon_as_it_cannot_be_a_label() -> None:
    reader = ReactParser()

    assert reader.feed("Act") == []
    assert reader.feed("ually") == [("answer", "Actually")]
    assert reader.feed(", yes") == [("answer", ", yes")]


def test_actions_and_observations_are_never_streamed() -> None:
    _, thought, answer = read(list("Observation: x\n" + USUAL + "\nFinal Answer: no"))

    assert (thought.strip(), answer) == ("look it up", "")


def test_thinking_is_streamed_as_a_thought_without_its_tags() -> None:
    _, thought, answer = read(list("<think>Action: x\n</think>\nIt is 42."))

    assert (thought.strip(), answer.strip()) == ("Action: x", "It is 42.")


@pytest.mark.parametrize("label", ["Observation:", "Thought:", "**Observation:**", "観察："])
def test_parsing_stops_at_an_invented_observation(label: str) -> None:
    reader = ReactParser()

    reader.feed(f"{USUAL}\n{label[:-1]}")
    assert not reader.is_done

    reader.feed(f"{label[-1]} cats")
    assert reader.is_done
    assert reader.feed("\nFinal Answer: cats") == []
    assert reader.result().action_input == ASKED


def test_the_parser_reports_text_that_turned_out_to_be_a_thought() -> None:
    reader = ReactParser()

    assert reader.feed("I look.\n") == [("answer", "I look.\n")]
    assert not reader.answer_was_thought

    reader.feed("Action: search\n")
    assert reader.answer_was_thought
    assert reader.result().thought == "I look."


def test_the_partial_plan_is_available_at_any_time() -> None:
    reader = ReactParser()

    reader.feed("Final Answer: 4")
    assert reader.result().final_answer == "4"

    reader.feed("2")
    assert reader.result().final_answer == "42"


BITS = [
    "Thought: ",
    "Action: ",
    "Action Input: ",
    "Observation: ",
    "Final Answer: ",
    "Answer: ",
]
BITS += [
    "**Thought:** ",
    "思考：",
    "行動：",
    "【最終回答】",
    "None",
    "search",
    '{"q": 1}',
    "text ",
]
BITS += [
    "\n",
    "\n",
    "\n",
    "\r\n",
    "```",
    "```json\n",
    "~~~\n",
    "<think>",
    "</think>",
    "</s>",
    "<",
]
BITS += ["<|im_end|>", "|>", "1. ", "##", "*", " ", "答え", "Act", "("]
replies = st.lists(st.sampled_from(BITS) | st.text(max_size=4), max_size=14).map("".join)


@many(200)
@given(replies, st.data())
@example("".join(text for text, *_ in [*ACTIONS.values(), *ANSWERS.values()]), None)
def test_streamed_and_saved_text_are_equal_for_any_chunking(
    text: str, data: st.DataObject | None
) -> None:
    reader, thought, answer = read(cut(text, data))
    whole = read([text])

    assert (thought, answer) == whole[1:]
    assert reader.is_done == whole[0].is_done
    if reader.answer_was_thought:
        return
    try:
        plan = reader.result()
    except PlanParseError:
        return
    assert answer.strip() == (plan.final_answer or "")
    if not plan.turn.reasoning:
        assert thought.strip() == plan.thought


def cut(text: str, data: st.DataObject | None) -> list[str]:
    if data is None:
        return list(text)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@pytest.mark.parametrize("name", [*ACTIONS, *ANSWERS])
def test_every_notation_is_parsed_the_same_letter_by_letter(name: str) -> None:
    text = (ACTIONS.get(name) or ANSWERS[name])[0]

    assert read(list(text))[1:] == read([text])[1:]


@many(150)
@given(st.text() | replies)
def test_any_text_is_a_plan_or_a_parse_error(text: str) -> None:
    try:
        plan = parse_react(text)
    except PlanParseError:
        return
    assert (plan.action is None) == bool(plan.final_answer)
    assert len(plan.calls) == (plan.action is not None)


@pytest.mark.parametrize(
    "unit",
    one_in(
        4,
        [
            "\n",
            "```\n",
            "Thought:\n",
            "<",
            "<|a",
            "* 1. ",
            "Action: None\n",
            "\r",
            "</think>",
            "(",
        ],
    ),
)
def test_a_long_hostile_reply_takes_linear_time(unit: str) -> None:
    text = "Thought: a\n" + unit * (200_000 // len(unit))

    began = time.process_time()
    read([text])

    assert time.process_time() - began < 2


@pytest.mark.parametrize("input", ["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, "f(" * 900])
def test_a_hostile_input_is_text(input: str) -> None:
    assert parse_react(f"Action: a\nAction Input: {input}").action_input == input
    assert parse_react(f"Action: a({input}=1)").action == "a"


@pytest.mark.parametrize(
    "inside", ["q={1, 2}", "q=b'x'", "q=f()", "q=1e999", "q='\\d'", "q=", "=)("]
)
def test_a_call_that_is_not_json_is_text(inside: str) -> None:
    assert parse_react(f"Action: search({inside})").action_input == inside
