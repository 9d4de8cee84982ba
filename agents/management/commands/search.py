"""Searches the documents from a terminal, for one question or a file of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import knowledge
from agents.knowledge import scope
from agents.knowledge.scope import Scope
from agents.models import Collection
from agents.tools.search import SearchResult


class Command(BaseCommand):
    help = "Searches the documents as an agent does, in all collections of the library."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question", nargs="?", default="")
        parser.add_argument("--queries", type=Path, metavar="FILE", help="JSONL: id, question")
        parser.add_argument("--collection", metavar="NAME", help="search only this one")
        parser.add_argument("--top", type=int, default=10, help="number of hits (default: 10)")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *, question: str, queries: Path | None, **options: Any) -> None:
        where = search_scope(options["collection"])
        if queries is not None:
            for row in read_queries(queries):
                found = describe(row["question"], options["top"], where)
                self.stdout.write(json.dumps({"id": row["id"]} | found, ensure_ascii=False))
        elif not question.strip():
            raise CommandError("Enter a question, or a file with --queries.")
        elif options["json"]:
            found = describe(question, options["top"], where)
            self.stdout.write(json.dumps(found, ensure_ascii=False, indent=2))
        else:
            self.print_result(knowledge.find(question, options["top"], scope=where))

    def print_result(self, result: SearchResult) -> None:
        seconds = f"{result.seconds * 1000:.0f} ms"
        if result.confidence == "none":
            self.stdout.write(f"Nothing relevant found ({seconds}). Nearest:")
        for number, hit in enumerate(result.candidates, start=1):
            location = " › ".join(part for part in (hit.title, hit.heading) if part)
            self.stdout.write(f"{number:2}. {hit.score:.2f}  {location}  ({hit.name})")
            self.stdout.write(f"    {' '.join(hit.text.split())[:200]}")
        if result.confidence != "none":
            self.stdout.write(f"Confidence: {result.confidence} ({seconds})")


def search_scope(name: str | None) -> Scope:
    """Return all collections, or the one with this name."""
    where = scope.everything()
    if name is None:
        return where
    ids = Collection.objects.filter(name=name).values_list("pk", flat=True)
    if not (limited := where.limited_to(ids)):
        raise CommandError(f"There is no collection named {name!r}.")
    return limited


def read_queries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CommandError(f"Can't read {str(path)!r}: {error.strerror}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield {"id": row["id"], "question": str(row["question"])}
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(
                f"Line {number} of {path} must be an object with id and question."
            ) from error


def describe(question: str, top: int, where: Scope) -> dict[str, Any]:
    """Return the hits in rank order, also those below the minimum, and the confidence."""
    result = knowledge.find(question, top, scope=where)
    return {
        "question": question,
        "confidence": result.confidence,
        "score": round(result.certainty, 4),
        "seconds": round(result.seconds, 3),
        "hits": [
            {
                "document": hit.path,
                "title": hit.title,
                "heading": hit.heading,
                "text": hit.text,
                "score": round(hit.score, 4),
                "part": hit.part,
            }
            for hit in result.candidates
        ],
    }
