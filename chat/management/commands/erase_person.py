"""Erases a user's data."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import runs
from chat.people_data import erasure, erasure_report


class Command(BaseCommand):
    help = "Erases a user's account and all of their data."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="username")
        parser.add_argument(
            "--yes", action="store_true", help="confirm that the data is erased"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="only print what would be deleted"
        )

    def handle(self, name: str, yes: bool, dry_run: bool, **options: Any) -> None:
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user named {name!r}.")
        plan = erasure_report.plan(user)
        for heading, lines in (("To be deleted", plan.goes), ("To be anonymized", plan.stays)):
            self.stdout.write(f"{heading}:")
            for line in lines:
                self.stdout.write(f"  {line.count:>7}  {line.what}")
        if dry_run:
            return
        if not yes:
            raise CommandError(
                "Nothing was erased. Add --yes to erase it. This can't be undone."
            )
        try:
            report = async_to_sync(_erase)(user)
        except erasure.ErasureRejected as reason:
            raise CommandError(str(reason)) from reason
        self.stdout.write(f"The data of {name!r} was erased.")
        for sentence in report.sentences:
            self.stdout.write(sentence)


async def _erase(user: User) -> erasure_report.Report:
    try:
        return await erasure.erase(user, None)
    finally:
        await runs.shut_down()
