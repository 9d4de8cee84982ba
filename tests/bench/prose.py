"""The cost of rendering an answer while it is streamed, ordinary or adversarial."""

import os
import time
from collections.abc import Iterable

import django

from tests.bench.rounds import Size, medians
from tests.hostile_markdown import hostile_texts, ordinary_text

FLUSH = 100  # characters per interval of a fast model
ABOUT = """\
Prose: an answer as one page is shown it, 100 characters at a time, in milliseconds of CPU; the
longest flush of it; then the whole, as a reload shows it. × is the ratio to ordinary Markdown
of the same length, within a round."""


def measure(size: Size) -> list[dict]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    texts = {"ordinary": ordinary_text(size.prose)} | hostile_texts(size.prose)
    rounds = [{name: _costs(text) for name, text in texts.items()} for _ in range(size.rounds)]
    return [_row(name, rounds) for name in texts]


def _row(name: str, rounds: Iterable[dict[str, dict]]) -> dict:
    figures = [
        each[name] | {"×": each[name]["grown"] / each["ordinary"]["grown"]} for each in rounds
    ]
    return {"text": name} | medians(figures)


def _costs(text: str) -> dict[str, float]:
    # Needs Django, which the other benchmarks don't load.
    from agents.web.presentation import markdown
    from agents.web.presentation.markdown import rendering

    for cache in (rendering._few_blocks, rendering._many_blocks):
        cache.cache_clear()
    growing, longest, began = markdown.StreamingMarkdown(), 0.0, time.process_time()
    for at in range(0, len(text), FLUSH):
        before = time.process_time()
        growing.feed(text[at : at + FLUSH])
        if growing.take_more() is None:
            growing.tail_html  # noqa: B018
        longest = max(longest, time.process_time() - before)
    grown = time.process_time() - began
    began = time.process_time()
    markdown.render_markdown(text)
    whole = time.process_time() - began
    return {"grown": grown * 1000, "flush": longest * 1000, "whole": whole * 1000}
