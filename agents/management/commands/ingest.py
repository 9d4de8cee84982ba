import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.knowledge import local_files
from agents.knowledge.local_files import Unreadable
from agents.models import Collection


class Command(BaseCommand):
    help = "Adds files and folders of this machine to the documents that agents search."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--collection", metavar="NAME", help="created if it doesn't exist")

    def handle(self, *, paths: list[Path], collection: str | None, **options: Any) -> None:
        files = local_files.expand(paths)
        target = find_collection(collection) if collection else None
        results = [self.report(result) for result in local_files.ingest_files(files, target)]
        if not all(results):
            sys.exit(1)

    def report(self, result: Any) -> bool:
        """Report what happened to a file, and return whether it succeeded."""
        if isinstance(result, Unreadable):
            self.stderr.write(result.reason)
            return False
        self.stdout.write(
            f"{result.outcome:9}  {result.document.source}  {result.document.title}"
        )
        return True


def find_collection(name: str) -> Collection:
    """Return the installation's collection of this name; a new one has no readers yet."""
    collection, _ = Collection.objects.get_or_create(
        name=name, owner=None, topic="", deleted_at=None
    )
    return collection
