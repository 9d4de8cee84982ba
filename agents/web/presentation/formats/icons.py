"""Small pieces of HTML used on many pages: icons, status marks, URLs."""

from functools import cache, lru_cache

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


@lru_cache(maxsize=4096)
def cached_url(name: str, *arguments: int) -> str:
    """Reverse a URL with a cache, because long lists have hundreds."""
    return reverse(name, args=arguments)
