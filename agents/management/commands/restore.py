from pathlib import Path
from typing import Any

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    no_translations,
)

from agents.management import backup


class Command(BaseCommand):
    help = "Restores a backup into an empty database, and checks it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="what “manage.py backup” wrote")

    @no_translations
    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            manifest = backup.restore(file)
        except backup.BackupError as error:
            raise CommandError(f"Not restored. {error}") from error
        self.stdout.write(
            f"Restored the backup of {manifest['created']} (Ashiato {manifest['version']}): "
            f"the database and {manifest['files']} files."
        )
        if missing := manifest["missing_files"]:
            self.stderr.write(
                f"{len(missing)} files weren't in the backup: {', '.join(missing)}"
            )
        if secrets := manifest["unreadable_secrets"]:
            names = "\n".join(f"  {name}" for name in secrets)
            self.stderr.write(
                f"These secrets can't be decrypted with this installation's keys:\n{names}\n"
                "Set the old keys (ASHIATO_ENCRYPTION_KEYS, ASHIATO_SECRET_KEY or the file "
                "secret_key), or enter the secrets again in the admin console."
            )
