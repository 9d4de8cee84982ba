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
420 answers with results and labeled figures, by two authors who had not seen the matcher. It
was tuned on all 300 of the first author (`tests/evidence_corpus`) and on half of the 120 of the
second (`tests/quality/evidence.jsonl`, split at random). The other half was only counted, once,
after the last change. Measured on the rendered answer.
"""
CORPUS = Path(__file__).resolve().parents[1] / "evidence_corpus"
TAG = re.compile(r"<[^>]+>|[^<]+")
MARKDOWN = re.compile(r"\*\*|__|`")
SECOND_CORPUS = Path(__file__).with_name("evidence.jsonl")
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


def measure() -> str:
    seconds = [json.loads(line) for line in SECOND_CORPUS.read_text().splitlines()]
    groups = {
        "first author (tuned on)": list(answers()),
        "second author, half tuned on": [e for e in seconds if e["half"] == "read"],
        "second author, half never read": [e for e in seconds if e["half"] == "unread"],
    }
    rows = [
        "| answers | invented figures that are marked | right figures that are marked |",
        "|---|---|---|",
    ]
    for name, entries in groups.items():
        counts = sum(map(count, entries), Counter[tuple[bool, bool]]())
        invented = share(counts, is_invented=True)
        rows.append(f"| {name} | {invented} | {share(counts, is_invented=False)} |")
    return "\n".join(rows)


def share(counts: Counter[tuple[bool, bool]], *, is_invented: bool) -> str:
    marked = counts[is_invented, True]
    total = marked + counts[is_invented, False]
    return f"{marked} of {total}, {100 * marked / total:.1f} %"
