"""Feedback on runs: ratings, notes, labels, verdicts, scores and corrections.

Users rate their own runs and can request a review; reviewers judge runs in their scope. Callers
decide which runs those are.
"""

import unicodedata
from dataclasses import dataclass
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit, masking
from agents.db.sanitize import sanitize_text
from agents.models import HiddenTopic, Run
from agents.review.models import (
    MAX_NAME_CHARS,
    REVIEW_PERMISSION,
    Criterion,
    Label,
    Note,
    Rating,
    Review,
    ReviewQueue,
    Score,
)
from agents.runs import pubsub

GENERAL_QUEUE = 0  # the ID of the queue that isn't a row
MAX_TEXT_CHARS = 10_000
MAX_ANSWER_CHARS = 100_000


class FeedbackRejected(Exception):
    """Raised when feedback is rejected; the user sees the reason."""


def reviewable_runs(user: User) -> QuerySet[Run]:
    """Return the runs this user can review."""
    runs = Run.objects.in_scope(user)
    return runs if user.has_perm(REVIEW_PERMISSION) else runs.none()


def reviewers() -> list[Any]:
    """Return all reviewers, regardless of scope."""
    return list(get_user_model().objects.with_perm(REVIEW_PERMISSION).order_by("username"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingInput:
    """A rating: up, or down with a reason; `is_good` is None to remove it."""

    is_good: bool | None
    reason: str = ""
    comment: str = ""
    asks_reviewer: bool = False


def rate(user: User, run: Run, rating: RatingInput) -> None:
    """Save the rating, replacing an earlier one."""
    _check_finished(run)
    _check_saved(run)
    with transaction.atomic():
        if rating.is_good is None:
            Rating.objects.filter(run=run, user=user).delete()
        else:
            # A good one needs no reason.
            fields = {"is_good": True, "reason": "", "comment": ""}
            if not rating.is_good:
                reason = rating.reason if rating.reason in Rating.Reason else ""
                comment = clean_text(rating.comment)
                fields = {"is_good": False, "reason": reason, "comment": comment}
            Rating.objects.update_or_create(fields, run_id=run.pk, user=user)
        if rating.asks_reviewer:
            flag(user, run, rating.comment)
        _publish(run)


def add_note(user: User, run: Run, text: str, step: int = 0) -> Note:
    """Add a note to a run or a step."""
    _check_step(run, step)
    return Note.objects.create(run=run, step=step, author=user, text=_require_text(text))


def edit_note(user: User, run: Run, pk: int, text: str) -> Note:
    """Change one's own note; raise Note.DoesNotExist for others."""
    note = Note.objects.get(run=run, author=user, pk=pk)
    note.text = _require_text(text)
    note.edited_at = timezone.now()
    note.save(update_fields=["text", "edited_at"])
    return note


def delete_note(user: User, run: Run, pk: int) -> None:
    """Delete one's own note; raise Note.DoesNotExist for others."""
    Note.objects.get(run=run, author=user, pk=pk).delete()


def add_label(user: User, run: Run, name: str, step: int = 0) -> Label:
    """Add a label, once."""
    name = normalize_label(name)
    _check_step(run, step)
    if not name:
        raise FeedbackRejected(_("Enter some text first."))
    if len(name) > MAX_NAME_CHARS:
        raise FeedbackRejected(
            _("Labels can be up to %(most)d characters.") % {"most": MAX_NAME_CHARS}
        )
    return Label.objects.get_or_create({"author": user}, run=run, step=step, name=name)[0]


def remove_label(run: Run, name: str, step: int = 0) -> None:
    Label.objects.filter(run=run, step=step, name=normalize_label(name)).delete()


def normalize_label(text: str) -> str:
    """Normalize a label's width, case and spacing."""
    return " ".join(unicodedata.normalize("NFKC", sanitize_text(text)).lower().split())


def flag(user: User, run: Run, why: str, queue: int | None = None) -> Review:
    """Request a review; a decided one is reopened, and reasons are added to an open one.

    Without a queue, it stays in its own; a new one goes to the general queue.
    """
    why = clean_text(why)
    _check_saved(run)
    with transaction.atomic():
        review = _lock_review(run)
        if not review.is_open and not run.is_owned_by(user):
            _check_queue(user, review)
        if why not in review.why:
            review.why = "\n".join(filter(None, [review.why, why]))
            if len(review.why) > MAX_TEXT_CHARS:
                sentence = _("Too long. All reasons together can be up to %(most)d characters.")
                raise FeedbackRejected(sentence % {"most": MAX_TEXT_CHARS})
        moved = _move(user, review, queue)
        is_new = review.flagged_by_id is None or not review.is_open
        if is_new:
            review.flagged_at = timezone.now()
        if is_new or run.is_owned_by(user):
            review.flagged_by = user
        old_verdict = review.verdict
        review.verdict = ""
        review.decided_by = review.decided_at = None
        review.save()
        # Only the length, because an entry outlives the run.
        details = {"characters": len(why), "before": old_verdict, **moved}
        audit.record(user, "review.flag", run, **details)
        _publish(run)
    return review


def assign(user: User, run: Run, person: User | None, queue: int | None = None) -> Review:
    """Assign the review to a reviewer, or to none, and move it to a queue."""
    if person is not None and not reviewable_runs(person).filter(pk=run.pk).exists():
        raise FeedbackRejected(_("This user can't review this run."))
    with transaction.atomic():
        review = _lock_review(run)
        _check_queue(user, review)
        moved = _move(user, review, queue)
        review.assignee = person
        review.save(update_fields=["assignee", "queue"])
        assignee = audit.person(person) if person else ""
        audit.record(user, "review.assign", run, to=assignee, **moved)
    return review


def _move(user: User, review: Review, queue: int | None) -> dict[str, str]:
    """Set the review's queue, unless it is None; return the details for the audit log."""
    if queue is None or queue == (review.queue_id or GENERAL_QUEUE):
        return {}
    _check_queue(user, review)
    target = ReviewQueue.objects.for_user(user).filter(pk=queue).first()
    if target is None and queue != GENERAL_QUEUE:
        raise FeedbackRejected(_("This review queue was deleted. Choose another one."))
    review.queue = target
    return {"queue": target.name if target else ""}


def score(user: User, run: Run, criterion: int, value: int | None) -> None:
    """Save a score by a criterion of the review's queue; None removes it."""
    _check_finished(run)
    review = Review.objects.for_user(user).filter(run=run.pk).first()
    queue = review.queue_id if review else None
    row = Criterion.objects.filter(pk=criterion, queue=queue).first() if queue else None
    if review is None or row is None:
        raise FeedbackRejected(
            _("The rubric of this run has changed. Reload the page and score it again.")
        )
    if value is not None and value not in dict(row.choices):
        raise FeedbackRejected(_("Choose one of the scores."))
    scores = Score.objects.filter(review=review, criterion=row)
    with transaction.atomic():
        old_value = scores.values_list("value", flat=True).first()
        if value is None:
            scores.delete()
        else:
            fields = {"value": value, "scored_by": user}
            Score.objects.update_or_create(fields, review=review, criterion=row)
        saved, before = (
            None if number is None else row.plain_value(number) for number in (value, old_value)
        )
        details = {"criterion": row.name, "score": saved, "before": before}
        audit.record(user, "review.score", run, **details)


def decide(user: User, run: Run, verdict: str, seen_stamp: str) -> Review:
    """Save a verdict on what the reviewer saw; `seen_stamp` is its stamp."""
    _check_finished(run)
    if verdict not in Review.Verdict:
        raise FeedbackRejected(_("Choose a verdict."))
    with transaction.atomic():
        review = _lock_unchanged(user, run, seen_stamp)
        old_verdict = review.verdict
        review.verdict = verdict
        review.decided_by = user
        review.decided_at = timezone.now()
        review.save()
        audit.record(user, "review.verdict", run, verdict=verdict, before=old_verdict)
        _publish(run)
    return review


def correct(user: User, run: Run, text: str, seen_stamp: str) -> Review:
    """Save the corrected answer for the user; an empty one removes it.

    A corrected answer counts as wrong, unless there is a more precise verdict.
    """
    _check_finished(run)
    correction = clean_text(text, MAX_ANSWER_CHARS)
    if correction and correction == run.answer.strip():
        raise FeedbackRejected(
            _("This is the same as the original answer. Edit it before you send it.")
        )
    if correction and correction == masking.mask_text(run.answer).strip():
        raise FeedbackRejected(
            _(
                "This is the masked answer, so the user would see the masks. Replace "
                "them before you send it."
            )
        )
    corrected_at = timezone.now()
    with transaction.atomic():
        review = _lock_unchanged(user, run, seen_stamp)
        if not correction and not review.correction:
            raise FeedbackRejected(_("Enter the corrected answer first."))
        old_length = len(review.correction)
        review.correction = correction
        review.corrected_by = user
        review.corrected_at = corrected_at
        if correction and review.is_open:
            review.verdict = Review.Verdict.WRONG
            review.decided_by = user
            review.decided_at = corrected_at
        review.save()
        characters = len(correction)
        audit.record(user, "review.correction", run, characters=characters, before=old_length)
        _publish(run)
    return review


def _lock_unchanged(user: User, run: Run, seen_stamp: str) -> Review:
    review = _lock_review(run)
    _check_queue(user, review)
    if review.stamp == seen_stamp:
        return review
    decider = review.decided_by or review.corrected_by
    change = _("%(person)s set the verdict to “%(verdict)s”.") % {
        "person": decider.get_username() if decider else _("Another reviewer"),
        "verdict": review.get_verdict_display() or _("undecided"),
    }
    advice = _(
        "Your change wasn't saved because someone else edited this. Review it and save again."
    )
    raise FeedbackRejected(f"{change} {advice}")


def _lock_review(run: Run) -> Review:
    """Return the run's review with its row locked."""
    Review.objects.get_or_create(run_id=run.pk)
    return Review.objects.select_for_update().get(run_id=run.pk)


def _check_queue(user: User, review: Review) -> None:
    """Leave what is in a queue to its reviewers, and to whom it is assigned."""
    if review.queue_id and not Review.objects.for_user(user).filter(pk=review.pk).exists():
        raise FeedbackRejected(_("This run is in a review queue of other reviewers."))


def _publish(run: Run) -> None:
    """Notify the run's pages after the commit."""
    publish = partial(async_to_sync(pubsub.publish), run.topic, "run.judged", run=run.pk)
    transaction.on_commit(publish)


def _check_finished(run: Run) -> None:
    if run.is_live:
        raise FeedbackRejected(
            _("This run is still in progress. Try again when it has finished.")
        )


def is_saved(run: Run) -> bool:
    """Whether reviewers can see the run, unlike that of a temporary chat."""
    return not HiddenTopic.objects.filter(topic=run.topic).exists()


def _check_saved(run: Run) -> None:
    if not is_saved(run):
        raise FeedbackRejected(
            _("A temporary chat isn't saved, so its answers can't be rated or reviewed.")
        )


def _check_step(run: Run, step: int) -> None:
    if step and not run.steps.filter(number=step).exists():
        raise FeedbackRejected(_("This step doesn't exist."))


def _require_text(text: str) -> str:
    if not (cleaned := clean_text(text)):
        raise FeedbackRejected(_("Enter some text first."))
    return cleaned


def clean_text(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return the text for storage; raise FeedbackRejected if it is too long."""
    cleaned = sanitize_text(text).replace("\r\n", "\n").strip()
    if len(cleaned) > max_chars:
        raise FeedbackRejected(
            _("Too long: %(count)d characters (max %(most)d).")
            % {"count": len(cleaned), "most": max_chars}
        )
    return cleaned
