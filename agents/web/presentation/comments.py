"""Comments on a step, as displayed below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Run

# Limits for comments below a step, because pages and frames have limits.
MAX_COMMENTS_CHARS = 20_000
MAX_BRIEF_CHARS = 2_000
OVERHEAD_CHARS = 100  # for author and time


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentThread:
    """The comments on a step, or on the whole answer (0), for a user who can add one."""

    run: int
    step: int
    viewer: int | None
    comments: Sequence[Any] = ()
    max_chars: int | None = MAX_COMMENTS_CHARS  # None on the page with all comments

    @property
    def visible_comments(self) -> Sequence[Any]:
        """The newest comments that fit, oldest first."""
        if self.max_chars is None:
            return self.comments
        remaining_chars = self.max_chars
        for count, comment in enumerate(reversed(self.comments)):
            remaining_chars -= len(comment.text) + OVERHEAD_CHARS
            if remaining_chars < 0:
                return self.comments[len(self.comments) - count :]
        return self.comments

    @property
    def left_out(self) -> int:
        return len(self.comments) - len(self.visible_comments)

    @property
    def pk(self) -> str:
        return f"{self.run}-{self.step}"

    @classmethod
    def of(
        cls, run: Run, step: int, viewer: int | None, most: int | None = MAX_COMMENTS_CHARS
    ) -> "CommentThread":
        comments = run.comments.filter(step=step).select_related("author__profile")
        return cls(
            run=run.pk, step=step, viewer=viewer, comments=list(comments), max_chars=most
        )


def threads_by_step(run: Run, viewer: int | None) -> dict[int, CommentThread]:
    """Return all comments of a run, by step."""
    is_read = "comments" in getattr(run, "_prefetched_objects_cache", ())
    comments = run.comments.all() if is_read else run.comments.select_related("author__profile")
    by_step: dict[int, list[Any]] = {}
    for comment in comments:
        by_step.setdefault(comment.step, []).append(comment)
    return {
        step: CommentThread(run=run.pk, step=step, viewer=viewer, comments=comments)
        for step, comments in by_step.items()
    }
