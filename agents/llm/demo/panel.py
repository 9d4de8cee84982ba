"""The demo model in a panel: compares and merges the members' answers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.engine.plans import QUESTION_TEMPLATE, SYNTHESIS_PROMPT, normal_form
from agents.engine.text import shorten_line

from .conversation import Message, Question, message_text, pattern

MAX_QUOTED = 160
_CITATION = re.compile(r"\[\d+\]")
_FIGURE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
# Text between backticks stays as it is: `6 * 7`, `2 ** 3`.
_MARKUP = re.compile(r"`+([^`]*)`+|\*\*(\S(?:.*?\S)?)\*\*|^\s*(?:#+|[*-]) |^\*\*|\*\*$|\|")
_COMPARE = pattern(QUESTION_TEMPLATE)
_MERGE = pattern(SYNTHESIS_PROMPT)


def compare(schema: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any] | None:
    """Return who agrees, what differs and, for a judge, whose answer is best."""
    fields = schema.get("properties") or {}
    match = _COMPARE.fullmatch(message_text(messages[-1])) if messages else None
    if match is None or not {"groups", "differences", "heading"} <= fields.keys():
        return None
    say = Question(match["question"]).say
    answers = _answers(match["answers"], fields["groups"]["items"]["items"]["enum"])
    groups = _groups(answers)
    differences = []
    for group in groups:
        # The first sentence that no other answer has, without Markdown.
        other_answers = [answer for name, answer in answers.items() if name not in group]
        sentences = [s for s in _SENTENCE.split(answers[group[0]]) if s.strip()]
        distinct = [s for s in sentences if not any(s in answer for answer in other_answers)]
        sentence = next(iter([*distinct, *sentences]), "")
        sentence = _MARKUP.sub(lambda match: match[1] or match[2] or "", sentence)
        sentence = shorten_line(sentence, MAX_QUOTED)
        differences.append(say("opinion", who=", ".join(group), words=sentence))
    value = {"groups": groups, "differences": differences, "heading": say("differ")}
    if "choice" in fields:
        evidence = dict.fromkeys(answers, 0)
        for name, answer in answers.items():
            if _figures(_SENTENCE.split(answer)[0]):
                evidence[name] = 2
            elif _CITATION.search(answer):
                evidence[name] = 1
        best = max(evidence, key=lambda name: evidence[name])
        is_better = len({*evidence.values()}) > 1
        reason = ("none", "source", "figure")[evidence[best] if is_better else 0]
        value |= {"choice": best, "reason": say(f"best_{reason}")}
    return value


def merge(messages: Sequence[Message]) -> str | None:
    """Merge answers, each statement with the names of its authors."""
    match = _MERGE.fullmatch(message_text(messages[-1])) if messages else None
    if match is None:
        return None
    answers = _answers(match["answers"], match["names"].split(", "))
    paragraphs = []
    for group in _groups(answers):
        text = answers[group[0]]
        space = "\n\n" if "\n" in text else " "
        paragraphs.append(f"{text}{space}({', '.join(group)})")
    return "\n\n".join([*paragraphs, match["differences"]])


def _answers(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the answer under each name; the names are in this order."""
    answers: dict[str, str] = {}
    for name, following in zip(names, [*names[1:], None], strict=True):
        _, _, text = text.partition(f"### {name}\n\n")
        end = text.find(f"\n\n### {following}\n\n") if following else -1
        answers[name] = (text if end < 0 else text[:end]).strip()
    return answers


def _groups(answers: Mapping[str, str]) -> list[list[str]]:
    """Group answers with the same figures, or the same text."""
    groups: dict[Any, list[str]] = {}
    for name, answer in answers.items():
        groups.setdefault(_figures(answer) or normal_form(answer), []).append(name)
    return list(groups.values())


def _figures(answer: str) -> frozenset[str]:
    return frozenset(_FIGURE.findall(normal_form(_CITATION.sub(" ", answer))))
