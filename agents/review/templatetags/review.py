"""Template tags for reviews."""

from django import template

from agents.models import GuardrailHit, Run
from agents.review.models import REVIEW_PERMISSION, Review, ReviewQueue
from agents.review.run_details import run_page
from agents.web.presentation import RunView

register = template.Library()


@register.simple_tag(takes_context=True)
def case_of(context: template.Context, view: RunView) -> run_page.CaseView:
    """Return a run with its feedback, as the page's user can review it."""
    return run_page.build_case(context["request"], view.run)


@register.simple_tag(takes_context=True)
def open_reviews(context: template.Context) -> int | None:
    """Return the number of open reviews; None for users who aren't reviewers."""
    user = context["user"]
    may_review = user.has_perm(REVIEW_PERMISSION)
    return Review.objects.for_user(user).open().count() if may_review else None


@register.simple_tag(takes_context=True)
def review_queues(context: template.Context) -> list[ReviewQueue]:
    """Return the queues that the page's user reviews, besides the general one."""
    return list(ReviewQueue.objects.for_user(context["user"]))


@register.simple_tag
def hit_of(run: Run, step: int) -> GuardrailHit | None:
    """Return the guardrail hit of this step, with its verdict."""
    return run.hits.select_related("pattern", "verdict").filter(step=step).first()
