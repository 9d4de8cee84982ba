import time

from django.core.management.base import BaseCommand, CommandError

from agents.models import Run, RunEvent
from agents.review import sample_runs


class Command(BaseCommand):
    help = "Fills the database with made-up runs, to see how the pages do when there are many."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--runs", type=int, default=200_000)
        parser.add_argument("--events", type=int, default=2_000_000, help="about so many")
        parser.add_argument(
            "--into-this-database",
            action="store_true",
            help="also where there are runs of real people, who will find these beside theirs",
        )

    def handle(self, *, runs: int, events: int, into_this_database: bool, **options) -> None:
        if runs < 1 or events < 1:
            raise CommandError("At least one run and one event.")
        if not into_this_database and sample_runs.has_real_runs():
            raise CommandError(
                "There are runs of real people here. Use a database of its own "
                "(ASHIATO_DATA=… or ASHIATO_DATABASE_URL=…), or say --into-this-database."
            )
        began = time.monotonic()
        sample_runs.seed_runs(runs, events, self.stdout.write)
        counts = f"{Run.objects.count():,} runs, {RunEvent.objects.count():,} events"
        self.stdout.write(f"{counts} in {time.monotonic() - began:.0f} s")
