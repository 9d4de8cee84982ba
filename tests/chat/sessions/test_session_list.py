from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Run
from chat.fragments.templatetags.session_list import session_rows
from chat.models import ChatSession
from chat.sessions.listing.session_list import by_day, older_by_day

pytestmark = pytest.mark.both_databases


def _row(
    title: str, status: str = "", is_shared: bool = False, is_pinned: bool = False
) -> ChatSession:
    row = ChatSession(pk=12, title=title, is_shared=is_shared)
    row.is_pinned = is_pinned
    row.live = Run(status=status) if status else None
    return row


@pytest.mark.parametrize(
    ("status", "mark"), [("", "#i-pin"), ("running", "running-dot"), ("waiting", "waiting-dot")]
)
def test_a_row_shows_the_run_or_that_it_is_pinned(status, mark):
    html = session_rows([_row("A", status, is_pinned=True)], None)

    assert mark in html
    assert "data-pinned" in html


def test_the_chat_of_the_page_is_marked():
    assert 'href="/chat/12/" aria-current="page"' in session_rows([_row("A")], 12)
    assert "aria-current" not in session_rows([_row("A")], 13)


def test_shared_chats_are_marked():
    assert "shared" in session_rows([_row("A", is_shared=True)], None)
    assert "shared" not in session_rows([_row("A")], None)


def test_titles_are_escaped():
    html = session_rows([_row("%(title)s {title} <script>")], None)

    assert html.count("%(title)s {title} &lt;script&gt;") == 3
    assert "<script>" not in html


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
