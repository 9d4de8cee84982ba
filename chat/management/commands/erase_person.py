"""Everything of a person, taken away."""

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from agents import runs
from chat.people_data import erasure


class Command(BaseCommand):
    help = "Erases an account with all that was said, asked and made under it."

    def add_arguments(self, parser) -> None:
        parser.add_argument("name")
        parser.add_argument("--yes", action="store_true", help="really do it")
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")

    def handle(self, name: str, yes: bool, dry_run: bool, **options) -> None:
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is nobody with the name {name!r}.")
        self._print_plan(erasure.plan(user))
        if dry_run:
            return
        if not yes:
            raise CommandError("Nothing was erased. Add --yes to do it: there is no way back.")
        try:
            report = async_to_sync(_erase)(user)
        except erasure.ErasureRejected as reason:
            raise CommandError(str(reason)) from reason
        self.stdout.write("All of it is gone.")
        for sentence in report.sentences:
            self.stdout.write(sentence)

    def _print_plan(self, plan: erasure.Plan) -> None:
        for heading, lines in (("Goes", plan.goes), ("Stays without a name", plan.stays)):
            self.stdout.write(f"{heading}:")
            for line in lines:
                self.stdout.write(f"  {line.count:>7}  {line.what}")


async def _erase(user) -> erasure.Report:
    try:
        return await erasure.erase(user, None)
    finally:
        await runs.shut_down()
