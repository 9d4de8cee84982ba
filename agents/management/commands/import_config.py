"""What a file says, compared with what is set up, and taken over."""

import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, no_translations

from agents.console.config_files import report
from agents.console.config_files.importer import ImportResult, apply_file, preview_file
from agents.console.config_files.permissions import TerminalUser

EXIT_WOULD_CHANGE = 2


class Command(BaseCommand):
    help = "Takes over what export_config wrote: all of it, or nothing if any is refused."

    def add_arguments(self, parser) -> None:
        parser.add_argument("file", help="the file; - reads what is piped in")
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only say what would change; ends with 2 where anything would",
        )
        parser.add_argument(
            "--remove",
            action="store_true",
            help="of the kinds that the file has, switch off what is not in it",
        )
        parser.add_argument("--yes", action="store_true", help="do not ask before it is done")

    @no_translations
    def handle(self, file: str, dry_run: bool, remove: bool, yes: bool, **options) -> None:
        text = read_file(file)
        found = preview_file(text, TerminalUser(), remove=remove)
        self._print_report(found)
        if found.is_empty:
            return
        if dry_run:
            sys.exit(EXIT_WOULD_CHANGE)
        if not yes:
            self._ask(file)
        done = apply_file(text, TerminalUser(), remove=remove, seal=found.seal)
        if not done.is_done:
            raise CommandError("Something was changed meanwhile, so nothing was done.")
        self.stdout.write("Done.")

    def _print_report(self, found: ImportResult) -> None:
        for line in report.lines(found):
            self.stdout.write(line)
        if found.is_refused:
            raise CommandError("Nothing was done, because something is refused.")

    def _ask(self, file: str) -> None:
        if file == "-" or not sys.stdin.isatty():
            raise CommandError("Nothing was done: say --yes where nobody can be asked.")
        if input("Do that? [y/N] ").strip().lower() not in {"y", "yes"}:
            raise CommandError("Nothing was done.")


def read_file(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8: byte {error.start + 1}.") from error
