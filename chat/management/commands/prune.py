"""What was kept long enough, deleted."""

from django.conf import settings
from django.core.management.base import BaseCommand

from chat.people_data import retention


class Command(BaseCommand):
    help = (
        "Deletes sessions and runs older than ASHIATO_KEEP_RUNS_DAYS, entries of the audit log "
        "older than ASHIATO_KEEP_AUDIT_DAYS, and sign-ins that are over. Live runs, runs in "
        "review and runs kept as examples stay."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say how much it is")

    def handle(self, dry_run: bool, **options) -> None:
        done = retention.prune(dry_run=dry_run)
        verb = "Would delete" if dry_run else "Deleted"
        self.stdout.write(
            f"{verb} {done.sessions} sessions, {done.runs} runs, {done.entries} audit entries "
            f"and {done.signins} sign-ins; {done.spared} old runs stay."
        )
        for name in ("KEEP_RUNS_DAYS", "KEEP_AUDIT_DAYS"):
            if getattr(settings, name) is None:
                self.stdout.write(f"ASHIATO_{name} is not set: those are kept for ever.")
