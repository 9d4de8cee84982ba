"""Template tags and filters; their code is in `agents.web.presentation`."""

from collections.abc import Callable

from django import template
from django.utils.safestring import SafeString

from agents.access.names import display_name, initials
from agents.engine.text import shorten
from agents.models import Approval, ToolGrant
from agents.web import branding
from agents.web.branding.pages import DISMISSED
from agents.web.presentation import (
    answer_fragments,
    evidence_fragments,
    run_fragments,
    step_fragments,
)
from agents.web.presentation.decisions.grants import grants_with_chats
from agents.web.presentation.evidence import shared_by
from agents.web.presentation.formats import badges, charts, dates, formatting, icons
from agents.web.static_files.bundles import bundle_elements

register = template.Library()

FILTERS: tuple[Callable[..., object], ...] = (
    badges.read_only_text,
    dates.date_text,
    display_name,
    initials,
    dates.datetime_text,
    dates.time_text,
    formatting.duration,
    formatting.integer,
    formatting.cost,
    formatting.count,
    formatting.token_size,
    formatting.is_scrollable,
    shorten,
)
TAGS: tuple[Callable[..., object], ...] = (
    charts.bar_chart,
    charts.share_bar,
    charts.sparkline,
    dates.timestamp,
    icons.icon,
    icons.status_mark,
    icons.cached_url,
    shared_by,
    answer_fragments.answer_more,
    answer_fragments.copy_button,
    answer_fragments.corrected_note,
    answer_fragments.correction_section,
    answer_fragments.rating,
    evidence_fragments.evidence_bar,
    evidence_fragments.evidence_sources,
    evidence_fragments.unsupported_button,
    run_fragments.chat_run,
    run_fragments.plan_section,
    run_fragments.run_section,
    step_fragments.step_row,
)

for function in FILTERS:
    register.filter(function.__name__, function)
for function in TAGS:
    register.simple_tag(function, name=function.__name__)


@register.simple_block_tag
def bundled(content: str) -> SafeString:
    """Load the stylesheets and scripts in the block as one file of each kind."""
    return bundle_elements(content)


@register.simple_tag
def get_branding() -> branding.Branding:
    """Return the installation's name, logo and color in the reader's language."""
    return branding.current()


@register.simple_tag(takes_context=True)
def undismissed_banner(context: template.Context) -> branding.Banner | None:
    """Return the installation's banner, unless it was dismissed in this browser."""
    banner = branding.current().banner
    if banner and context["request"].COOKIES.get(DISMISSED) == banner.version:
        return None
    return banner


@register.simple_tag(takes_context=True)
def waiting_count(context: template.Context) -> int:
    """Return how many approvals wait for the page's user."""
    waiting = Approval.objects.waiting()
    # On every page, and usually none waits: to find that out takes a tenth of the time.
    return waiting.for_user(context["user"]).count() if waiting.exists() else 0


@register.simple_tag(takes_context=True)
def tool_grants(context: template.Context) -> list[ToolGrant]:
    """Return the tools that the page's user always allows."""
    return grants_with_chats(context["user"])
