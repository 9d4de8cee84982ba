"""What people say of a step, as it is shown below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """The comments on a step, or on the whole answer (0), for one who can add to them."""

    run: int
    step: int
    viewer: int | None
    comments: Sequence[Any] = ()

    @property
    def pk(self) -> str:
        return f"{self.run}-{self.step}"

    @classmethod
    def of(cls, run: Run, step: int, viewer: int | None) -> "Thread":
        said = run.comments.filter(step=step).select_related("author")
        return cls(run=run.pk, step=step, viewer=viewer, comments=list(said))


def threads(run: Run, viewer: int | None) -> dict[int, Thread]:
    """All that was said of a run, by the steps it was said of."""
    is_read = "comments" in getattr(run, "_prefetched_objects_cache", ())
    said = run.comments.all() if is_read else run.comments.select_related("author")
    by_step: dict[int, list[Any]] = {}
    for comment in said:
        by_step.setdefault(comment.step, []).append(comment)
    return {
        step: Thread(run=run.pk, step=step, viewer=viewer, comments=comments)
        for step, comments in by_step.items()
    }
