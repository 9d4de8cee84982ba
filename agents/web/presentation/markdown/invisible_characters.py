"""Makes invisible characters visible, so that nobody approves what they can't see."""

import re
import unicodedata

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
BLANK_NAMES = re.compile(
    "VARIATION SELECTOR|FILLER|BRAILLE PATTERN BLANK|COMBINING GRAPHEME JOINER"
)


def render_exact(text: str) -> SafeString:
    """Render the exact text for approval, with invisible characters revealed."""
    return mark_invisible(escape(text))


def mark_invisible(html: str) -> SafeString:
    """Reveal invisible characters in HTML that is safe already and has none in its tags."""
    return mark_safe(UNUSUAL.sub(_mark_invisible, html))


def reveal_invisible(text: str) -> str:
    """Reveal invisible characters in plain text."""

    def reveal(match: re.Match[str]) -> str:
        character = match[0]
        return f"[U+{ord(character):04X}]" if _is_invisible(character) else character

    return UNUSUAL.sub(reveal, text)


def _mark_invisible(match: re.Match[str]) -> str:
    character = match.group()
    if not _is_invisible(character):
        return character
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, code)
    return format_html('<mark class="invisible" title="{}">{}</mark>', name, code)


def _is_invisible(character: str) -> bool:
    """Whether it is a control, joiner, direction mark, tag, unusual space or blank letter."""
    is_odd = unicodedata.category(character)[0] in "CZ"
    return is_odd or BLANK_NAMES.search(unicodedata.name(character, "")) is not None
