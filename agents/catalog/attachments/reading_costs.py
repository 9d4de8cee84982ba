"""What reading a chat's files has cost: part of the first run that gets them."""

from typing import Any

from django.db import transaction

from agents.db import database
from agents.engine.events import Event, StatusKind
from agents.engine.loop import Capability, RunLoop
from agents.models import ReadingUsage, Run

from . import file_context


class ReadingCosts(Capability):
    """Counts in a run what reading its files has cost."""

    def __init__(self, run: Run) -> None:
        self.row = run

    async def before_run(self, run: RunLoop) -> list[Event]:
        if run.is_start:  # they have been read by now
            for note in await database.run(charge, self.row):
                run.add_note(note)
        return []


def charge(run: Run) -> list[dict[str, Any]]:
    """Return notes for the run's first request, one per model; each file is charged once."""
    # Also earlier ones: a long recording may be read after its own run had to go on.
    digests = {ref["digest"] for ref in file_context.file_refs(run) if ref.get("digest")}
    if not digests or run.user_id is None:
        return []
    with transaction.atomic():
        rows = ReadingUsage.objects.filter(user=run.user_id, digest__in=digests)
        charged = list(rows.select_for_update())
        ReadingUsage.objects.filter(pk__in=[row.pk for row in charged]).delete()
    notes: list[dict[str, Any]] = []
    for model in dict.fromkeys(row.model for row in charged):
        readings = [row for row in charged if row.model == model]
        costs = [row.cost for row in readings if row.cost is not None]
        cost = sum(costs) if costs else None
        prompt_tokens = sum(row.prompt_tokens for row in readings)
        completion_tokens = sum(row.completion_tokens for row in readings)
        usage = {
            "model": model,
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "cost": cost,
            "estimated": False,
        }
        note = {
            "kind": StatusKind.FILES_READ,
            "model": model,
            "count": len(readings),
            "cost": cost,
            "usage": usage,
        }
        notes.append(note)
    return notes
