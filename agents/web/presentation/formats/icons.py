"""Small pieces of HTML used on many pages: icons, status marks, URLs."""

from functools import cache

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

ICON_ALIASES = {
    "completed": "done",
    "stopped": "cancelled",
    "interrupted": "unknown",
    "chat": "answer",
    "scales": "evaluation",
    "shield": "guardrail",
    "pen": "rename",
    "budget": "cost",
}
# The number of no row, in place of any in a URL.
STAND_IN = 9_000_000_000_000_000_000


@cache
def icon(name: str) -> SafeString:
    """Render a symbol of `_icons.html`, hidden from screen readers."""
    return format_html(
        '<svg class="icon icon-{0}" aria-hidden="true"><use href="#i-{0}"/></svg>',
        ICON_ALIASES.get(name, name),
    )


@cache
def status_mark(status: str, label: str) -> SafeString:
    """Render a status as icon and text."""
    html = '<span class="status" data-status="{}">{}<span>{}</span></span>'
    return format_html(html, status, icon(status), label)


def cached_url(name: str, *numbers: int) -> str:
    """Reverse a URL of numbers, from a pattern that is cached: long lists have hundreds."""
    return _url_pattern(name, len(numbers)).format(*numbers)


@cache
def _url_pattern(name: str, count: int) -> str:
    examples = [STAND_IN + index for index in range(count)]
    url = reverse(name, args=examples)
    for example in examples:
        url = url.replace(str(example), "{}")
    return url
