"""Exports a user's data to a file."""

import os
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.access import audit
from chat.people_data import data_export


class Command(BaseCommand):
    help = "Exports all data of a user as a ZIP file of JSON and Markdown."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="username")
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.zip")

    def handle(self, name: str, output: Path, **options: Any) -> None:
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user named {name!r}.")
        audit.record(None, audit.PERSON_EXPORTED, audit.person(user))
        try:
            descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                size = sum(file.write(piece) for piece in data_export.archive(user))
        except OSError as error:
            raise CommandError(f"Can't write {output}: {error.strerror}.") from error
        self.stdout.write(f"{output}: {size} bytes")
