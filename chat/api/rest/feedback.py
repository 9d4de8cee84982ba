"""Ratings of the user's own runs, and requests for a review."""

from typing import Literal

from django.shortcuts import get_object_or_404
from ninja import Router, Schema
from pydantic import Field

from agents.db import errors
from agents.models import Run
from agents.review.annotations import feedback
from agents.review.models import Rating
from agents.review.views.feedback import deleted_as_404

from .access import ASK, RestRequest
from .schemas import Input, Switch, Text

router = Router(tags=["Feedback"], exclude_none=True)


class NewRating(Input):
    rating: Literal["good", "bad"]
    reason: Rating.Reason | None = Field(None, description="Why it is bad.")
    comment: Text = Field("", max_length=feedback.MAX_TEXT_CHARS)
    asks_reviewer: Switch = Field(False, description="Whether a reviewer should look at it.")


class RatingItem(Schema):
    rating: Literal["good", "bad"]
    reason: str | None = None
    comment: str | None = None


@router.put(
    "/{int:run_id}/rating",
    auth=ASK,
    response=RatingItem,
    operation_id="rateRun",
    summary="Rate a run",
)
def rate_run(request: RestRequest, run_id: int, data: NewRating) -> RatingItem:
    """Rate the answer of a run of one's own, instead of an earlier rating."""
    run = _own_run(request, run_id)
    rating = feedback.RatingInput(
        is_good=data.rating == "good",
        reason=data.reason or "",
        comment=data.comment,
        asks_reviewer=data.asks_reviewer,
    )
    _rate(request, run, rating)
    saved = run.ratings.get(user=request.auth.user)
    return RatingItem(
        rating="good" if saved.is_good else "bad",
        reason=saved.reason or None,
        comment=saved.comment or None,
    )


@router.delete(
    "/{int:run_id}/rating",
    auth=ASK,
    response={204: None},
    operation_id="deleteRating",
    summary="Delete a rating",
)
def delete_rating(request: RestRequest, run_id: int) -> None:
    _rate(request, _own_run(request, run_id), feedback.RatingInput(is_good=None))


def _own_run(request: RestRequest, pk: int) -> Run:
    user = request.auth.user
    return get_object_or_404(Run.objects.for_user(user), pk=pk, user=user)


def _rate(request: RestRequest, run: Run, rating: feedback.RatingInput) -> None:
    with deleted_as_404(run), errors.reraise_as(feedback.FeedbackRejected):
        feedback.rate(request.auth.user, run, rating)
