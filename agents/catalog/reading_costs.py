"""What reading a chat's files has cost: part of the first run that gets them."""

from typing import Any

from django.db import transaction

from agents.engine.events import StatusKind
from agents.models import ReadingUsage, Run

from . import file_context


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
    names = list(dict.fromkeys(row.model for row in charged))
    return [_note(name, [row for row in charged if row.model == name]) for name in names]


def _note(model: str, rows: list[ReadingUsage]) -> dict[str, Any]:
    costs = [row.cost for row in rows if row.cost is not None]
    prompt, completion = (
        sum(getattr(row, name) for row in rows)
        for name in ("prompt_tokens", "completion_tokens")
    )
    usage = {
        "model": model,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cost": sum(costs) if costs else None,
        "estimated": False,
    }
    summary = {"model": model, "count": len(rows), "cost": usage["cost"]}
    return {"kind": StatusKind.FILES_READ, **summary, "usage": usage}
