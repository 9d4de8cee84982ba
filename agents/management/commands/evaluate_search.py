"""Measures the search with questions whose passages are known."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.catalog.language_models import model_setups, reranking
from agents.engine.material import Passage
from agents.knowledge import evaluation, local_files, scope
from agents.knowledge.evaluation import BadSet, Outcome
from agents.knowledge.retrieval.finder import Mode
from agents.knowledge.scope import Scope
from agents.models import Collection
from agents.tools.search import SURE, SearchResult

MODES: dict[str, Mode] = {"full text": "words", "vectors": "vectors", "hybrid": "hybrid"}
# It is the order that is measured, not the time.
PATIENCE_SECONDS = 30.0
COLLECTION = "Search evaluation (temporary)"
HEADER = "n  recall@1  recall@3  recall@5  recall@10   MRR"


class Command(BaseCommand):
    help = (
        "Measures search with a set of questions: recall and mean reciprocal rank for full "
        "text, vectors and both, by kind of question."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "set",
            nargs="?",
            type=Path,
            default=evaluation.OWN_SET,
            help="a folder with questions.jsonl and documents/, or a JSONL file of questions "
            "about documents that are already ingested (default: the set of the product)",
        )

        parser.add_argument(
            "--model",
            default="",
            help="a model that re-ranks uncertain searches, as an agent's own does; each asks "
            "it once, which costs tokens",
        )

    def handle(self, **options: Any) -> None:
        try:
            self.evaluate(options["set"], options["model"])
        except BadSet as error:
            raise CommandError(error) from error

    def evaluate(self, path: Path, model: str) -> None:
        if model and (error := model_setups.configuration_error(model)):
            raise CommandError(str(error))
        own = reranking.by_own_model(model) if model else None
        reranker = replace(own, seconds=PATIENCE_SECONDS) if own else None

        def rerank(question: str, result: SearchResult) -> Sequence[Passage]:
            if reranker is None or result.certainty >= SURE:
                return result.candidates
            reranked = asyncio.run(reranker.rerank(question, result.candidates))
            if reranked.problem:
                self.stderr.write(f"Not re-ranked: {reranked.problem}")
            return reranked.passages

        is_folder = path.is_dir()
        questions = evaluation.read_questions(path / "questions.jsonl" if is_folder else path)
        with documents_of(path / "documents" if is_folder else None) as where:
            for name, mode in MODES.items():
                self.print_outcomes(name, list(evaluation.ask(questions, where, mode)))
            if reranker:
                outcomes = evaluation.ask(questions, where, "hybrid", rerank)
                self.print_outcomes(f"+ {model}"[:13], list(outcomes))

    def print_outcomes(self, name: str, outcomes: list[Outcome]) -> None:
        answerable = [outcome for outcome in outcomes if outcome.question.documents]
        unanswerable = [outcome for outcome in outcomes if not outcome.question.documents]
        self.stdout.write(f"\n{name:14}{HEADER}")
        for kind in dict.fromkeys(outcome.question.kind for outcome in answerable):
            self.print_row(
                kind, [outcome for outcome in answerable if outcome.question.kind == kind]
            )
        self.print_row("all", answerable)
        if answerable and unanswerable:
            area = evaluation.separation(answerable, unanswerable)
            self.stdout.write(f"{'unanswerable':14}{len(unanswerable):<3}AUC {area:.3f}")

    def print_row(self, name: str, outcomes: Sequence[Outcome]) -> None:
        if not outcomes:
            return
        cells = [f"{evaluation.recall(outcomes, k):>8.2f}" for k in evaluation.CUTOFFS]
        score = evaluation.reciprocal_rank(outcomes)
        self.stdout.write(f"{name:14}{len(outcomes):<3}{'  '.join(cells)}   {score:.3f}")


@contextmanager
def documents_of(folder: Path | None) -> Iterator[Scope]:
    """Ingest the set's documents into a collection of their own, and delete it afterwards."""
    if folder is None:
        yield scope.everything()
        return
    collection = Collection.objects.create(name=COLLECTION)
    try:
        list(local_files.ingest_files(local_files.expand([folder]), collection))
        yield scope.for_collection(collection.pk)
    finally:
        collection.delete()
