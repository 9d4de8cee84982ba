import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents import knowledge


class Command(BaseCommand):
    help = "Adds Markdown and text files to the documents that the search tool searches."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")

    def handle(self, *, paths: list[Path], **options: Any) -> None:
        results = [self.ingest_file(file) for path in paths for file in expand_path(path)]
        if not all(results):
            sys.exit(1)

    def ingest_file(self, path: Path) -> bool:
        """Report what happened to the document, and return whether it succeeded."""
        try:
            done = knowledge.ingest(path)
        except knowledge.UnreadableDocument as error:
            self.stderr.write(str(error))
            return False
        self.stdout.write(f"{done.outcome:9}  {done.document.source}  {done.document.title}")
        return True


def expand_path(path: Path) -> list[Path]:
    """Return the file or the folder's files; an empty folder is rejected like a bad file."""
    return (knowledge.find_files(path) if path.is_dir() else []) or [path]
