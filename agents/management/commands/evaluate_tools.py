"""Measures which of many tools a model is sent, with questions whose tools are known."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.catalog.tools import tool_vectors
from agents.engine.tool_selection import (
    CONSTANT_TOOLS,
    Situation,
    ToolSelector,
    ToolText,
    evaluation,
)
from agents.engine.tool_selection.evaluation import BadSet, DescribedTool, Question
from agents.knowledge import embeddings

HEADER = f"{'':22}{'n':>4}  {'sent':>6}  {'first 8':>7}"


class Command(BaseCommand):
    help = (
        "Measures tool selection with a set of tools and questions: how often the right tool "
        "is among those sent (up to 25), and among the first 8, as find_tools returns them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "set",
            nargs="?",
            type=Path,
            default=evaluation.OWN_SET,
            help="a folder with tools.txt, questions.txt and held_out.txt (default: the set of "
            "the product)",
        )

    def handle(self, **options: Any) -> None:
        try:
            tools = evaluation.read_tools(options["set"] / "tools.txt")
            questions = evaluation.read_questions(options["set"])
        except BadSet as error:
            raise CommandError(error) from error
        self.stdout.write(f"{len(tools)} tools, {len(questions)} questions")
        self.report("words", ToolSelector(), tools, questions)
        if (model := embeddings.configured_model()) == embeddings.OFF:
            self.stdout.write("\nSearch by meaning is switched off.")
            return
        selector = ToolSelector(rank_by_meaning=_by_meaning)
        try:
            self.report(f"words and meaning ({model})", selector, tools, questions)
        except embeddings.EmbeddingUnavailable as error:
            raise CommandError(error) from error

    def report(
        self,
        name: str,
        selector: ToolSelector,
        tools: Sequence[DescribedTool],
        questions: Sequence[Question],
    ) -> None:
        self.stdout.write(f"\n{name}\n{HEADER}")
        for language in evaluation.LANGUAGES:
            in_language = [question for question in questions if question.language == language]
            held_out = [question for question in in_language if question.is_held_out]
            for label, subset in ((language, in_language), (f"{language}, held out", held_out)):
                if subset:
                    self.stdout.write(asyncio.run(_row(label, selector, tools, subset)))


async def _row(
    label: str,
    selector: ToolSelector,
    tools: Sequence[DescribedTool],
    questions: Sequence[Question],
) -> str:
    sent = found = 0
    for question in questions:
        chosen = await selector.select(tools, Situation(question=question.text))
        hits = await selector.search(tools, question.text)
        sent += not (chosen.names - {*CONSTANT_TOOLS}).isdisjoint(question.tools)
        found += evaluation.rank(question, [tool.name for tool in hits]) is not None
    count = len(questions)
    return f"{label:22}{count:>4}  {sent / count:>6.1%}  {found / count:>7.1%}"


async def _by_meaning(question: str, texts: Mapping[str, ToolText]) -> list[str]:
    wanted = {name: text.whole for name, text in texts.items()}
    return await asyncio.to_thread(tool_vectors.closest, question, wanted)
