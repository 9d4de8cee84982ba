"""Links and durations that all views of a run share."""

from datetime import datetime

from agents.models import Run

from .icons import cached_url


def trace_url(run: int) -> str:
    return cached_url("trace:run", run)


def text_url(run: int, name: str) -> str:
    """Return the URL of a full text: `question`, `answer` or `correction`."""
    return f"{trace_url(run)}text/{name}/"


def chat_url(run: Run) -> str:
    """Return the URL of the run's chat, if it has one."""
    name, _, pk = run.topic.partition(".")
    return f"/chat/{pk}/#run-{run.pk}" if name == "chat" else ""


def milliseconds(start: datetime, end: datetime | None) -> float | None:
    return None if end is None else max(0.0, (end - start).total_seconds() * 1000)
