"""A database upgrade that is killed between a change and its record."""

import os
import signal

from tests.bench import accounts  # noqa: F401  (sets Django up)

from django.core.management import call_command  # isort: skip
from django.db.migrations.recorder import MigrationRecorder  # isort: skip


def _die(*about: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    MigrationRecorder.record_applied = _die
    call_command("migrate", verbosity=0)
