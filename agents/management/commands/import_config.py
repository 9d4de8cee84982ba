"""Compares a file with the configuration, and imports it."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    no_translations,
)

from agents.console.system.config_files import report
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser

EXIT_WOULD_CHANGE = 2


class Command(BaseCommand):
    help = "Imports a file written by export_config: everything, or nothing if it has errors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="file to import; - reads stdin")
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print what would change; exits with 2 if there are changes",
        )
        parser.add_argument(
            "--remove",
            action="store_true",
            help="disable everything that isn't in the file, for the types in the file",
        )
        parser.add_argument("--yes", action="store_true", help="don't ask for confirmation")

    @no_translations
    def handle(self, file: str, dry_run: bool, remove: bool, yes: bool, **options: Any) -> None:
        text = read_file(file)
        preview = preview_file(text, TerminalUser(), remove=remove)
        for line in report.lines(preview):
            self.stdout.write(line)
        if preview.is_refused:
            raise CommandError("Nothing was imported. Fix the errors first.")
        if preview.is_empty:
            return
        if dry_run:
            sys.exit(EXIT_WOULD_CHANGE)
        if not yes:
            if file == "-" or not sys.stdin.isatty():
                raise CommandError(
                    "Nothing was imported. Without a terminal, add --yes to confirm."
                )
            if input("Import these changes? [y/N] ").strip().lower() not in {"y", "yes"}:
                raise CommandError("Nothing was imported.")
        result = apply_file(text, TerminalUser(), remove=remove, seal=preview.seal)
        if not result.is_done:
            raise CommandError(
                "Nothing was imported: the settings changed meanwhile. Try again."
            )
        self.stdout.write("Imported.")


def read_file(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"Can't read {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} isn't UTF-8 (byte {error.start + 1}).") from error
