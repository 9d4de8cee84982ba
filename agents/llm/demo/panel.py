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
_COMPARE, _MERGE = pattern(QUESTION_TEMPLATE), pattern(SYNTHESIS_PROMPT)


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
        others = [answer for name, answer in answers.items() if name not in group]
        sentence = _distinct_sentence(answers[group[0]], others)
        differences.append(say("opinion", who=", ".join(group), words=sentence))
    value = {"groups": groups, "differences": differences, "heading": say("differ")}
    if "choice" in fields:
        evidence = {name: _evidence(answer) for name, answer in answers.items()}
        best = max(evidence, key=lambda name: evidence[name])
        is_better = len({*evidence.values()}) > 1
        reason = ("none", "source", "figure")[evidence[best] if is_better else 0]
        value |= {"choice": best, "reason": say(f"best_{reason}")}
    return value


def merge(messages: Sequence[Message]) -> str | None:
    """Merge answers, each statement with the names of its authors."""
    found = _MERGE.fullmatch(message_text(messages[-1])) if messages else None
    if found is None:
        return None
    answers = _answers(found["answers"], found["names"].split(", "))
    groups = [(answers[group[0]], ", ".join(group)) for group in _groups(answers)]
    signed = [f"{text}{chr(10) * 2 if chr(10) in text else ' '}({who})" for text, who in groups]
    return "\n\n".join([*signed, found["differences"]])


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


def _evidence(answer: str) -> int:
    return 2 if _figures(_SENTENCE.split(answer)[0]) else 1 if _CITATION.search(answer) else 0


def _distinct_sentence(answer: str, others: Sequence[str]) -> str:
    """Return the first sentence that no other answer has, without Markdown."""
    sentences = [phrase for phrase in _SENTENCE.split(answer) if phrase.strip()]
    own = [phrase for phrase in sentences if not any(phrase in other for other in others)]
    first = next(iter([*own, *sentences]), "")
    return shorten_line(_MARKUP.sub(lambda m: m[1] or m[2] or "", first), MAX_QUOTED)
