"""Verifies the audit log."""

import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.access.audit import messages
from agents.access.audit.hash_chain import Anchor, verify
from agents.console.activity.audit import save_verification


class Command(BaseCommand):
    help = "Verifies the whole audit log; fails at the first invalid entry."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--anchor",
            type=Path,
            metavar="FILE",
            help="file that stores the last verified entry: checks that the log still contains "
            "it, then updates the file; keep it out of reach of database administrators",
        )

    def handle(self, anchor: Path | None, **options: Any) -> None:
        saved_anchor = read_anchor(anchor) if anchor and anchor.exists() else None
        verification = verify(anchor=saved_anchor)
        save_verification(verification)
        sentence = messages.verification_sentence(verification)
        if not verification.holds:
            raise CommandError(sentence)
        if anchor:
            write_anchor(anchor, verification.end)
        self.stdout.write(sentence)


def read_anchor(path: Path) -> Anchor:
    try:
        data = json.loads(path.read_text())
        return Anchor(number=int(data["number"]), seal=str(data["seal"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"Can't read the anchor {path}: {error}") from error


def write_anchor(path: Path, end: Anchor) -> None:
    """Write the anchor atomically: half of one would raise an alarm."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps({"number": end.number, "seal": end.seal}) + "\n")
        draft.replace(path)
    except OSError as error:
        raise CommandError(f"Can't write the anchor {path}: {error}") from error
