"""How times, sums and counts are written on every page."""

from functools import cache, lru_cache

from django import template
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from agents.models import Approval, Run
from agents.web.presentation import RunView
from agents.web.presentation.markdown import cut

register = template.Library()

NOTHING = "—"
A_NUMBER = 987_654_321_987_654_321
DRAWN_AS = {"completed": "done", "stopped": "cancelled", "interrupted": "unknown"}


@register.filter
def duration(milliseconds: float | None) -> str:
    """0.42 s, 12.3 s, 1 min 05 s, 2 h 07 min."""
    if milliseconds is None:
        return NOTHING
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return _("%(seconds)s s") % {"seconds": f"{seconds:.{2 if seconds < 9.995 else 1}f}"}
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _("%(minutes)d min %(seconds)02d s") % {"minutes": minutes, "seconds": rest}
    hours, minutes = divmod(minutes, 60)
    return _("%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": minutes}


@register.filter
def scrolls(text: str, most: int) -> bool:
    """Whether it may be too long for its box: then a keyboard must be able to get there."""
    return len(text) > most or text.count("\n") > most // 20


@register.filter
def beginning(text: str, most: int) -> str:
    """As much of a text as there is room for."""
    return text if len(text) <= most else f"{cut(text, most)}…"


@register.filter
def whole(milliseconds: float) -> str:
    """For programs to read, and so in no language."""
    return f"{milliseconds:.0f}"


@register.filter
def cost(dollars: float | None) -> str:
    """$0.0012 below a dollar, $1.50 above; a free run says $0."""
    if dollars is None:
        return NOTHING
    if dollars == 0:
        return "$0"
    if dollars < 0.0001:
        return "<$0.0001"
    return f"${dollars:,.{4 if dollars < 1 else 2}f}"


@register.filter
def count(number: int | None) -> str:
    """1,234; nothing counted is a dash."""
    return f"{number:,}" if number else NOTHING


@register.simple_tag(takes_context=True)
def waiting_count(context: template.Context) -> int:
    """How many calls wait for the person who looks at this page."""
    return Approval.objects.for_user(context["user"]).waiting().count()


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A symbol of `_icons.html`, for the eye only: the word beside it is read out."""
    return format_html(
        '<svg class="icon icon-{0}" aria-hidden="true"><use href="#i-{0}"/></svg>',
        DRAWN_AS.get(name, name),
    )


@register.simple_tag
@cache
def status_mark(status: str, label: str) -> SafeString:
    """How something stands, for the eye and in a word."""
    html = '<span class="status" data-status="{}">{}<span>{}</span></span>'
    return format_html(html, status, icon(status), label)


@register.simple_tag
@lru_cache(maxsize=4096)
def path(name: str, *arguments: int) -> str:
    """As `url`, but worked out once: a long list has hundreds of them."""
    return reverse(name, args=arguments)


@register.simple_tag
def untold(view: RunView) -> SafeString:
    """A run of which nothing was told yet: like every other that the same agent begins."""
    run = view.run
    html = _untold(get_language(), view.place, run.agent_name, run.model, run.max_steps)
    return mark_safe(html.replace(str(A_NUMBER), view.pk))


@lru_cache(maxsize=256)
def _untold(language: str, place: str, agent: str, model: str, max_steps: int) -> str:
    now, about = timezone.now(), {"agent_name": agent, "model": model, "max_steps": max_steps}
    run = Run(pk=A_NUMBER, started_at=now, **about)
    return render_to_string("_run.html", {"view": RunView(run, place, until=0, now=now)})


@register.simple_tag
def rating(view: RunView) -> SafeString:
    """The thumbs below an answer: most of them nobody has touched, and those are all alike."""
    if view.rating or view.is_flagged:
        return render_to_string("_rating.html", {"view": view})
    return mark_safe(_untouched(get_language()).replace(str(A_NUMBER), view.pk))


@cache
def _untouched(language: str) -> str:
    run = Run(pk=A_NUMBER, status=Run.Status.COMPLETED)
    return render_to_string("_rating.html", {"view": RunView(run, is_judged=False)})


@register.simple_tag
def run_columns() -> SafeString:
    """What the rows of steps hold: the same above all of them."""
    return _columns(get_language())


@cache
def _columns(language: str) -> SafeString:
    return render_to_string("_run_columns.html")
