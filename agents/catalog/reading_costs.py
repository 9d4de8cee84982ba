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
        found = list(rows.select_for_update())
        ReadingUsage.objects.filter(pk__in=[row.pk for row in found]).delete()
    models = list(dict.fromkeys(row.model for row in found))
    return [_note(name, [row for row in found if row.model == name]) for name in models]


def _note(model: str, rows: list[ReadingUsage]) -> dict[str, Any]:
    known = [row.cost for row in rows if row.cost is not None]
    prompt, completion = (
        sum(getattr(row, name) for row in rows)
        for name in ("prompt_tokens", "completion_tokens")
    )
    usage = {
        "model": model,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cost": sum(known) if known else None,
        "estimated": False,
    }
    about = {"model": model, "count": len(rows), "cost": usage["cost"]}
    return {"kind": StatusKind.FILES_READ, **about, "usage": usage}
