"""What people say of a step, as it is shown below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Run

# Characters of what was said, where it stands below a step: pages and frames have a limit.
MAX_COMMENTS_CHARS = 20_000
MAX_BRIEF_CHARS = 2_000
OVERHEAD_CHARS = 100  # for who said it, and when


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentThread:
    """The comments on a step, or on the whole answer (0), for one who can add to them."""

    run: int
    step: int
    viewer: int | None
    comments: Sequence[Any] = ()
    most: int | None = MAX_COMMENTS_CHARS  # characters; None on the page that shows all of them

    @property
    def shown(self) -> Sequence[Any]:
        """The newest ones that there is room for, oldest first."""
        if self.most is None:
            return self.comments
        room = self.most
        for count, comment in enumerate(reversed(self.comments)):
            room -= len(comment.text) + OVERHEAD_CHARS
            if room < 0:
                return self.comments[len(self.comments) - count :]
        return self.comments

    @property
    def left_out(self) -> int:
        return len(self.comments) - len(self.shown)

    @property
    def pk(self) -> str:
        return f"{self.run}-{self.step}"

    @classmethod
    def of(
        cls, run: Run, step: int, viewer: int | None, most: int | None = MAX_COMMENTS_CHARS
    ) -> "CommentThread":
        said = run.comments.filter(step=step).select_related("author")
        return cls(run=run.pk, step=step, viewer=viewer, comments=list(said), most=most)


def threads_by_step(run: Run, viewer: int | None) -> dict[int, CommentThread]:
    """All that was said of a run, by the steps it was said of."""
    is_read = "comments" in getattr(run, "_prefetched_objects_cache", ())
    said = run.comments.all() if is_read else run.comments.select_related("author")
    by_step: dict[int, list[Any]] = {}
    for comment in said:
        by_step.setdefault(comment.step, []).append(comment)
    return {
        step: CommentThread(run=run.pk, step=step, viewer=viewer, comments=comments)
        for step, comments in by_step.items()
    }
