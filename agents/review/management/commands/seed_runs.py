import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import Run, RunEvent
from agents.review.samples import sample_runs


class Command(BaseCommand):
    help = "Fills the database with generated runs, to try out pages with a lot of data."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--runs", type=int, default=200_000)
        parser.add_argument(
            "--events", type=int, default=2_000_000, help="approximate number of events"
        )
        parser.add_argument(
            "--into-this-database",
            action="store_true",
            help="add them even if the database has real runs, which appear next to them",
        )

    def handle(
        self, *, runs: int, events: int, into_this_database: bool, **options: Any
    ) -> None:
        if runs < 1 or events < 1:
            raise CommandError("--runs and --events must be at least 1.")
        if not into_this_database and sample_runs.has_real_runs():
            raise CommandError(
                "This database has real runs. Use a separate one (ASHIATO_DATA=… or "
                "ASHIATO_DATABASE_URL=…), or add --into-this-database."
            )
        began = time.monotonic()
        sample_runs.seed_runs(runs, events, self.stdout.write)
        counts = f"{Run.objects.count():,} runs, {RunEvent.objects.count():,} events"
        self.stdout.write(f"{counts} in {time.monotonic() - began:.0f} s")
