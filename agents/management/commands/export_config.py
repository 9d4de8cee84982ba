"""Exports the configuration to a file."""

from pathlib import Path
from typing import Any

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    no_translations,
)

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.kinds import KINDS
from agents.console.system.config_files.permissions import TerminalUser


class Command(BaseCommand):
    help = "Exports agents, models, tools and other settings as YAML, without secrets."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)"
        )
        parser.add_argument(
            "--only",
            default="",
            metavar="KINDS",
            help=f"comma-separated types to export: {', '.join(KINDS)}",
        )
        parser.add_argument(
            "--name",
            action="append",
            default=[],
            help="export only items with this name; can be repeated",
        )

    @no_translations
    def handle(self, output: Path | None, only: str, name: list[str], **options: Any) -> None:
        text = export(TerminalUser(), ExportSelection(kinds=parse_kinds(only), names=name))
        if output is None:
            self.stdout.write(text, ending="")
            return
        try:
            output.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise CommandError(f"Can't write {output}: {error.strerror}.") from error


def parse_kinds(only: str) -> list[str]:
    kinds = [kind.strip() for kind in only.split(",") if kind.strip()]
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        available = ", ".join(KINDS)
        raise CommandError(f"Unknown type: {', '.join(unknown)}. Available types: {available}.")
    return kinds or list(KINDS)
