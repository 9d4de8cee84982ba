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
        shelf = find_collection(collection) if collection else None
        results = [self.report(one) for one in local_files.ingest_files(files, shelf)]
        if not all(results):
            sys.exit(1)

    def report(self, one: Any) -> bool:
        """Report what happened to a file, and return whether it succeeded."""
        if isinstance(one, Unreadable):
            self.stderr.write(one.reason)
            return False
        self.stdout.write(f"{one.outcome:9}  {one.document.source}  {one.document.title}")
        return True


def find_collection(name: str) -> Collection:
    """Return the installation's collection of this name; a new one has no readers yet."""
    found, _ = Collection.objects.get_or_create(
        name=name, owner=None, topic="", deleted_at=None
    )
    return found
