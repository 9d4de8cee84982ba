"""A process for one job that has ended other processes; started by the server itself."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.db import jobs


class Command(BaseCommand):
    help = "Does one job in a process of its own. The server starts it after repeated crashes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", help="document, import or run")
        parser.add_argument("item", type=int, help="its ID")
        parser.add_argument("claim", help="the claim of the process that starts this one")

    def handle(self, kind: str, item: int, claim: str, **options: Any) -> None:
        jobs.run_isolated(kind, item, claim)
