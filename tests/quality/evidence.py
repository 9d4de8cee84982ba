"""How many inventions in answers are marked, and how many right figures are marked wrongly."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from django.apps import apps
from django.conf import settings

if not settings.configured:
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
assert apps.ready

from agents.models import AgentStep  # noqa: E402 (needs Django)
from agents.web.presentation.evidence import find_evidence, observed  # noqa: E402
from agents.web.presentation.markdown import render_markdown  # noqa: E402

TITLE = "Evidence"
INTRO = """
300 answers with results and labeled figures (`tests/evidence_corpus`), written by somebody who
had not seen the matcher; 177 figures and names are invented, all of them in answers with even
numbers. The matcher was tuned on the answers with even numbers and on those with id % 4 = 1.
Those with id % 4 = 3 were only counted, never read; they have no inventions. So a changed digit
in each of their right figures stands in for some, which isn't what models invent. Measured on
the rendered answer.
"""
CORPUS = Path(__file__).resolve().parents[1] / "evidence_corpus"
TAG = re.compile(r"<[^>]+>|[^<]+")
MARKDOWN = re.compile(r"\*\*|__|`")
UNSUPPORTED = '<span class="unsupported">'


def answers() -> Iterator[dict]:
    for path in sorted(CORPUS.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def marked_text(entry: dict) -> tuple[str, list[bool]]:
    """Return an answer's text, and for each character whether it is marked."""
    steps = [
        AgentStep(
            number=number,
            action=result["tool"],
            observation=result["text"],
            kind="tool",
            status="done",
        )
        for number, result in enumerate(entry["results"], start=2)
    ]
    html = render_markdown(entry["answer"])
    found = find_evidence(html, observed(steps), question=entry["question"])
    text: list[str] = []
    marks: list[bool] = []
    is_marked = is_citation = False
    for tag in TAG.findall(found.html):
        if tag.startswith("<"):
            is_citation = tag.startswith('<a class="cite"') or (is_citation and tag != "</a>")
            is_marked = tag == UNSUPPORTED or (is_marked and tag != "</span>")
            if tag.startswith(("</p", "</li", "</t", "<br")):
                text.append("\n")
                marks.append(False)
        elif not is_citation:
            plain = unescape(tag)
            text.append(plain)
            marks += [is_marked] * len(plain)
    return "".join(text), marks


def is_figure_marked(text: str, marks: list[bool], figure: dict) -> bool:
    written = MARKDOWN.sub("", figure["text"])
    position = -1
    for _occurrence in range(figure.get("nth", 0) + 1):
        position = text.find(written, position + 1)
    if position < 0:
        position = text.find(written)
    return position >= 0 and any(marks[position : position + len(written)])


def count(entry: dict) -> Counter[tuple[bool, bool]]:
    """Count figures by whether they are invented and whether they are marked."""
    text, marks = marked_text(entry)
    return Counter(
        (figure["is"] == "invented", is_figure_marked(text, marks, figure))
        for figure in entry["figures"]
    )


def changed(entry: dict) -> Iterator[dict]:
    """Yield the answer with one digit changed, for each of its figures with two or more."""
    sources = " ".join([entry["question"], *(result["text"] for result in entry["results"])])
    for figure in entry["figures"]:
        text = figure["text"]
        digits = [match.start() for match in re.finditer(r"\d", text)]
        if len(digits) < 2 or entry["answer"].count(text) != 1:
            continue
        position = digits[1]
        digit = str((int(text[position]) + 3) % 10)
        wrong = f"{text[:position]}{digit}{text[position + 1 :]}"
        number = re.sub(r"\D", "", wrong)
        if number not in re.sub(r"(?<=\d),(?=\d)", "", sources):
            yield entry | {
                "answer": entry["answer"].replace(text, wrong),
                "figures": [{"text": wrong, "is": "invented"}],
            }


def measure() -> str:
    groups: dict[str, Counter[tuple[bool, bool]]] = {}
    for entry in answers():
        name = "even" if entry["id"] % 2 == 0 else "tuned" if entry["id"] % 4 == 1 else "unread"
        groups.setdefault(name, Counter()).update(count(entry))
        if name == "unread":
            for wrong in changed(entry):
                groups.setdefault("changed", Counter()).update(count(wrong))
    right = {
        n: f"{c[False, True]} of {c[False, True] + c[False, False]}" for n, c in groups.items()
    }
    wrong = {
        n: f"{c[True, True]} of {c[True, True] + c[True, False]}" for n, c in groups.items()
    }

    def share(name: str, *, invented: bool) -> str:
        counts = groups[name]
        total = counts[invented, True] + counts[invented, False]
        return f"{100 * counts[invented, True] / total:.1f} %" if total else "–"

    rows = [
        "| answers | invented figures that are marked | right figures that are marked |",
        "|---|---|---|",
        f"| even numbers (tuned on) | {wrong['even']}, {share('even', invented=True)} "
        f"| {right['even']}, {share('even', invented=False)} |",
        f"| id % 4 = 1 (tuned on) | – | {right['tuned']}, {share('tuned', invented=False)} |",
        f"| id % 4 = 3 (never read) | {wrong['changed']}, {share('changed', invented=True)} "
        f"with a changed digit | {right['unread']}, {share('unread', invented=False)} |",
    ]
    return "\n".join(rows)
