"""The tags and filters of our templates; their code is in `agents.web.presentation`."""

from django import template

from agents.models import Approval
from agents.web.presentation import formatting, icons, template_cache

register = template.Library()

for code in (
    formatting.duration,
    formatting.whole,
    formatting.cost,
    formatting.count,
    formatting.scrolls,
    formatting.beginning,
):
    register.filter(code.__name__, code)

for code in (
    icons.icon,
    icons.status_mark,
    icons.path,
    template_cache.alike,
    template_cache.run_section,
    template_cache.run_head,
    template_cache.step_row,
    template_cache.untold,
    template_cache.rating,
    template_cache.run_columns,
):
    register.simple_tag(code, name=code.__name__)


@register.simple_tag(takes_context=True)
def waiting_count(context: template.Context) -> int:
    """How many calls wait for the user of this page."""
    return Approval.objects.for_user(context["user"]).waiting().count()
