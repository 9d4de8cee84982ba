"""What pages show of reviews."""

from django import template

from agents.models import GuardrailHit, Run
from agents.review import feedback, run_page
from agents.review.models import Review
from agents.web.presentation import RunView

register = template.Library()


@register.simple_tag(takes_context=True)
def case_of(context: template.Context, view: RunView) -> run_page.CaseView:
    """A run with what was said of it, as the person who looks at this page may judge it."""
    return run_page.build_case(context["request"], view.run)


@register.simple_tag(takes_context=True)
def open_reviews(context: template.Context) -> int | None:
    """How many wait to be judged; None for whoever judges nothing."""
    user = context["user"]
    may_review = user.has_perm(feedback.REVIEW_PERMISSION)
    return Review.objects.for_user(user).open().count() if may_review else None


@register.simple_tag
def hit_of(run: Run, step: int) -> GuardrailHit | None:
    """The pattern that fired in this step, with what was said of it."""
    return run.hits.select_related("pattern", "verdict").filter(step=step).first()
