from datetime import timedelta

import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from agents.models import Run
from agents.web.presentation.template_cache import RUN_PLACEHOLDER
from chat.listing.session_list import by_day, older_by_day
from chat.models import ChatSession
from chat.templatetags.session_list import TITLE_PLACEHOLDER, session_rows

pytestmark = pytest.mark.both_databases


def _row(
    title: str, status: str = "", is_shared: bool = False, is_pinned: bool = False
) -> ChatSession:
    row = ChatSession(pk=12, title=title, is_shared=is_shared)
    row.is_pinned = is_pinned
    row.live = Run(status=status) if status else None
    return row


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("status", ["", "running", "waiting"])
@pytest.mark.parametrize("here", [12, 13, None, ""])
@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("is_pinned", [True, False])
def test_the_cached_row_equals_its_template(language, status, here, is_shared, is_pinned):
    row = _row(f"<b>A & {RUN_PLACEHOLDER}</b>", status, is_shared, is_pinned)

    with translation.override(language):
        drawn = session_rows([row], here)
        about = {"row": row, "is_here": here == 12}
        assert drawn == render_to_string("chat/listing/_sessions.html#session_row", about)


def test_shared_chats_are_marked():
    assert "shared" in session_rows([_row("A", is_shared=True)], None)
    assert "shared" not in session_rows([_row("A")], None)


def test_titles_are_escaped():
    drawn = session_rows(
        [_row(f"{TITLE_PLACEHOLDER} %(title)s {{{{ row.pk }}}} <script>")], None
    )

    assert (
        f'<span class="title">{TITLE_PLACEHOLDER} %(title)s {{{{ row.pk }}}} &lt;script&gt;'
        in drawn
    )


def test_chats_are_grouped_by_the_day_of_their_last_use():
    now, rows = timezone.now(), []
    for days in (-1, 0, 1, 2, 9, 99):
        rows.append(ChatSession(title=str(days), updated_at=now - timedelta(days=days)))

    def listed(sections):
        return [(day.heading, [row.title for row in day.rows]) for day in sections]

    earlier = [("Previous 30 days", ["9"]), ("Earlier", ["99"])]
    assert listed(by_day(rows)) == [
        *(("Today", ["-1", "0"]), ("Yesterday", ["1"]), ("Previous 7 days", ["2"])),
        *earlier,
    ]
    assert by_day([]) == []
    last = f"{(now - timedelta(days=3)).isoformat()},1"
    assert listed(older_by_day(rows[3:], last)) == [("", ["2"]), *earlier]
    assert listed(older_by_day(rows[4:], last)) == earlier
