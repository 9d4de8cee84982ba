"""Deletes data past its retention period."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from chat.people_data import retention

AGED_BY_SETTING = {
    "RUN_RETENTION_DAYS": "chats and runs",
    "AUDIT_RETENTION_DAYS": "audit log entries",
}


class Command(BaseCommand):
    help = (
        "Deletes chats and runs older than ASHIATO_RUN_RETENTION_DAYS, audit log entries "
        "older than ASHIATO_AUDIT_RETENTION_DAYS, and expired sign-in sessions. Live runs, "
        "runs in review and runs saved as examples are never deleted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="only print how much would be deleted"
        )

    def handle(self, dry_run: bool, **options: Any) -> None:
        result = retention.prune(dry_run=dry_run)
        verb = "Would delete" if dry_run else "Deleted"
        self.stdout.write(
            f"{verb} {result.sessions} chats, {result.runs} runs, {result.entries} audit log "
            f"entries and {result.signins} sign-in sessions. {result.spared} old runs are "
            "protected."
        )
        for name, rows in AGED_BY_SETTING.items():
            if getattr(settings, name) is None:
                self.stdout.write(f"ASHIATO_{name} isn't set: {rows} are never deleted.")
