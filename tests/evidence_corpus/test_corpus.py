"""The corpus is consistent: 300 answers, each figure labeled, each computed one recomputed.

A figure is `supported` by a result or the question, `computed` from them as `how` says, or
`invented`. List markers, citation numbers, code and URLs aren't figures.
"""

import ast
import json
import operator
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ANSWERS = [
    json.loads(line)
    for path in sorted(Path(__file__).parent.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
WORDS = {
    "four out of five": 0.8,
    "two thirds": 2 / 3,
    "third": 1 / 3,
    "eighth": 1 / 8,
    "quarter": 1 / 4,
    "half": 1 / 2,
    "twice": 2,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "nine": 9,
    "ten": 10,
    "二": 2,
    "三": 3,
}
SCALES = {
    "k": 10**3,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "千": 10**3,
    "万": 10**4,
    "億": 10**8,
    "兆": 10**12,
}
NUMBER = re.compile(
    r"(\d[\d,]*(?:\.\d+)?|\.\d+)(?: ?(k\b|thousand|million|billion|[千万億兆]))?"
)
CLOCK = re.compile(r"(\d+)(?::| h |時間)(\d+)")


def evaluate(expression: str) -> float:
    """Return the value of an expression of numbers, + - * / and parentheses."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp():
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(f"{expression} has more than numbers, + - * / and parentheses")

    return value(ast.parse(expression, mode="eval").body)


def readings(text: str) -> list[tuple[float, float]]:
    """Return the values a figure can have, each with the error that its rounding allows."""
    if clock := CLOCK.search(text):
        return [(int(clock[1]) * 60 + int(clock[2]), 0.5)]
    parts = NUMBER.findall(text)
    if not parts:
        written = next(number for word, number in WORDS.items() if word in text.lower())
        return [(written, written * 0.1)]
    total = sum(
        float(digits.replace(",", "")) * SCALES.get(scale, 1) for digits, scale in parts
    )
    last_digits = parts[-1][0].replace(",", "")
    last_scale = SCALES.get(parts[-1][1], 1)
    if "." in last_digits:
        error = 0.5 * 10 ** -len(last_digits.split(".")[1])
    else:
        error = 0.5 * 10 ** (len(last_digits) - len(last_digits.rstrip("0")))
    # `how` may be in the unit of the text: 35億円 is 1015-980.
    return [(total, error * last_scale), (float(last_digits), error)]


def test_there_are_300_answers_with_unique_ids() -> None:
    assert sorted(answer["id"] for answer in ANSWERS) == list(range(1, 301))


def test_two_in_five_answers_are_japanese() -> None:
    assert Counter(answer["language"] for answer in ANSWERS) == {"en": 180, "ja": 120}


def test_half_of_the_answers_have_one_to_three_inventions() -> None:
    inventions = [
        sum(figure["is"] == "invented" for figure in answer["figures"]) for answer in ANSWERS
    ]
    assert inventions.count(0) == 150
    assert max(inventions) <= 3


def test_every_figure_is_in_its_answer_and_overlaps_no_other() -> None:
    for answer in ANSWERS:
        taken: set[int] = set()
        for figure in answer["figures"]:
            text = figure["text"]
            starts = [match.start() for match in re.finditer(re.escape(text), answer["answer"])]
            assert figure["nth"] < len(starts), (answer["id"], text)
            start = starts[figure["nth"]]
            characters = range(start, start + len(text))
            assert taken.isdisjoint(characters), (answer["id"], text)
            taken.update(characters)


def test_every_figure_has_a_label_and_only_computed_ones_an_expression() -> None:
    for figure in (figure for answer in ANSWERS for figure in answer["figures"]):
        assert figure["is"] in {"supported", "computed", "invented"}
        assert ("how" in figure) == (figure["is"] == "computed")


def test_no_invention_is_in_the_results_or_the_question() -> None:
    for answer in ANSWERS:
        sources = " ".join([answer["question"], *(row["text"] for row in answer["results"])])
        for figure in answer["figures"]:
            if figure["is"] == "invented":
                pattern = rf"(?<![\d.,]){re.escape(figure['text'])}(?!\d|[.,]\d)"
                assert not re.search(pattern, sources, re.IGNORECASE), (answer["id"], figure)


def test_every_computed_figure_is_what_its_expression_gives() -> None:
    wrong = [
        (answer["id"], figure["text"], figure["how"])
        for answer in ANSWERS
        for figure in answer["figures"]
        if figure["is"] == "computed"
        and not any(
            abs(value - abs(evaluate(figure["how"]))) <= error * 1.000001
            for value, error in readings(figure["text"])
        )
    ]
    assert wrong == []


def test_no_two_answers_have_the_same_sentence() -> None:
    sentences = Counter(
        sentence
        for answer in ANSWERS
        for sentence in {
            part.strip("|-: ") for part in re.split(r"(?<=[.!?])\s|[。\n]", answer["answer"])
        }
        if len(sentence) >= 10
    )
    assert [sentence for sentence, count in sentences.items() if count > 1] == []
