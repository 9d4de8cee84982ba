"""Feedback on a run for display: rating, review and corrected answer."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import cached_property
from django.utils.safestring import SafeString

from agents.access.names import display_name

from ..formats.links import text_url
from ..markdown import render_excerpt
from .answer import RunAnswer


@dataclass(frozen=True)
class CorrectionView:
    """A reviewer's correction, with its author."""

    review: Any

    @cached_property
    def _excerpt(self) -> tuple[SafeString, int]:
        return render_excerpt(self.review.correction)

    @property
    def text(self) -> SafeString:
        return self._excerpt[0]

    @property
    def left_out(self) -> int:
        """Number of characters that aren't displayed."""
        return len(self.review.correction) - self._excerpt[1]

    @property
    def href(self) -> str:
        return text_url(self.review.run_id, "correction")

    @property
    def at(self) -> datetime:
        return self.review.corrected_at

    @property
    def by(self) -> str:
        return display_name(self.review.corrected_by)


class RunFeedback(RunAnswer):
    """A run with its answer and what people think of it."""

    @property
    def can_rate(self) -> bool:
        """Whether the viewer can rate the answer: their own, once it is there."""
        return self.is_own and self.masker is None and bool(self.run.answer)

    @cached_property
    def rating(self) -> Any:
        """The user's rating."""
        is_shown = self.is_judged and self.masker is None and not self.run.is_live
        ratings = self.run.ratings.all() if is_shown else ()
        return next((row for row in ratings if row.user_id == self.run.user_id), None)

    @cached_property
    def judgement(self) -> Any:
        """The review, if there is one."""
        is_there = self.is_judged and not self.run.is_live
        review = getattr(self.run, "review", None) if is_there else None
        return review and self.visible_row(review)

    @property
    def is_flagged(self) -> bool:
        """Whether the user asked for a review that is still open."""
        review = self.judgement
        return (
            review is not None and review.is_open and review.flagged_by_id == self.run.user_id
        )

    @property
    def correction(self) -> CorrectionView | None:
        """The corrected answer."""
        review = self.judgement
        return CorrectionView(review) if review is not None and review.correction else None
