"""Small pieces of HTML that stand on many pages: icons, status marks, addresses."""

from functools import cache, lru_cache

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

ICON_ALIASES = {"completed": "done", "stopped": "cancelled", "interrupted": "unknown"}


@cache
def icon(name: str) -> SafeString:
    """A symbol of `_icons.html`, for the eye only: the word beside it is read out."""
    return format_html(
        '<svg class="icon icon-{0}" aria-hidden="true"><use href="#i-{0}"/></svg>',
        ICON_ALIASES.get(name, name),
    )


@cache
def status_mark(status: str, label: str) -> SafeString:
    """How something stands, for the eye and in a word."""
    html = '<span class="status" data-status="{}">{}<span>{}</span></span>'
    return format_html(html, status, icon(status), label)


@lru_cache(maxsize=4096)
def cached_url(name: str, *arguments: int) -> str:
    """As `url`, but worked out once: a long list has hundreds of them."""
    return reverse(name, args=arguments)
