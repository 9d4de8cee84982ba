"""The state of the composer, for the page and its live frames alike."""

from base64 import b64encode
from collections.abc import Collection

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from agents.web.presentation.element import Element
from agents.web.presentation.formats.formatting import MAX_QUESTION_CHARS

register = template.Library()

COMPOSER_STATE = Element("""\
<div id="composer-state" hidden data-live-run="{run}"{waiting} \
data-acknowledged="{acknowledged}"{more}></div>""")


@register.simple_tag
def composer_state(
    live_run: int | None,
    is_waiting: bool,
    acknowledged: str = "",
    returned: str = "",
    refused: str = "",
    returned_files: Collection[int] = (),
) -> SafeString:
    """Render what the composer's script reads: the live run and what became of a message."""
    attributes = {}
    if refused:
        attributes["data-refused"] = refused
    if returned_files:
        attributes["data-returned-files"] = ",".join(map(str, returned_files))
    if len(returned) > MAX_QUESTION_CHARS:
        # As base64, because a quotation mark in an attribute takes six characters.
        attributes["data-returned-base64"] = b64encode(returned.encode()).decode()
    elif returned:
        attributes["data-returned"] = returned
    return COMPOSER_STATE(
        run=live_run or "",
        waiting=mark_safe(" data-waiting") if is_waiting else "",
        acknowledged=acknowledged,
        more=format_html_join("", ' {}="{}"', attributes.items()) if attributes else "",
    )
