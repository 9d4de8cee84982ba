from pathlib import Path
from typing import Any

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    no_translations,
)

from agents.management import backup

KEYS = (
    "The keys aren't in it. Store them elsewhere: ASHIATO_SECRET_KEY and "
    "ASHIATO_ENCRYPTION_KEYS, or the file secret_key in the data folder."
)


class Command(BaseCommand):
    help = (
        "Saves the database, all files and the data folders as one file, while the server runs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="for example backup.tar, or backup.tar.gz")

    @no_translations
    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            manifest = backup.create(file)
        except (backup.BackupError, OSError) as error:
            raise CommandError(f"No backup was made. {error}") from error
        size = file.stat().st_size / 1_000_000
        self.stdout.write(
            f"Saved {file}: the database and {manifest['files']} files, {size:.1f} MB."
        )
        if missing := manifest["missing_files"]:
            self.stderr.write(
                f"{len(missing)} files are missing in the storage: {', '.join(missing)}"
            )
        self.stdout.write(KEYS)
