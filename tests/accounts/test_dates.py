"""Every date on a page is in its user's time zone and format."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from agents.accounts.users import profiles
from agents.models import Run
from agents.web.preferences import Preferences
from agents.web.presentation.formats import dates
from agents.web.presentation.formats.dates import DateStyle
from agents.web.workflows import schedules

MOMENT = datetime(2025, 3, 4, 15, 6, 7, tzinfo=UTC)
TEXTS = {
    ("en", "", False): "Mar 4, 2025, 15:06",
    ("en", "", True): "Mar 4, 2025, 3:06 PM",
    ("en", "iso", False): "2025-03-04 15:06",
    ("en", "dmy", False): "04/03/2025 15:06",
    ("en", "mdy", True): "03/04/2025 3:06 PM",
    ("ja", "", False): "2025年3月4日 15:06",
    ("ja", "", True): "2025年3月4日 午後3:06",
}


@pytest.mark.parametrize(("wanted", "text"), TEXTS.items())
def test_a_date_has_the_format_of_the_profile(wanted, text):
    language, date_format, is_half_day = wanted
    with translation.override(language), dates.override(DateStyle(date_format, is_half_day)):
        assert dates.datetime_text(MOMENT) == text


def test_the_exact_time_and_its_zone_are_on_hover():
    with Preferences("en", "Asia/Tokyo").applied():
        html = dates.timestamp(MOMENT)

    assert 'datetime="2025-03-05T00:06:07+09:00"' in html
    assert 'title="Mar 5, 2025, 00:06:07 (Asia/Tokyo, UTC+09:00)"' in html
    assert "data-moment=" in html


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=59), "now"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59), "59 minutes ago"),
        (timedelta(hours=23), "23 hours ago"),
        (timedelta(days=6, hours=5), "6 days ago"),
        (timedelta(days=-2), "in 2 days"),
    ],
)
def test_a_recent_moment_is_relative(age, text):
    with translation.override("en"):
        assert dates.relative_text(MOMENT, MOMENT + age) == text


def test_an_older_moment_is_absolute():
    with translation.override("en"):
        assert "Mar 4, 2025, 15:06</time>" in dates.timestamp(MOMENT)
        assert "now</time>" in dates.timestamp(timezone.now())


def test_a_message_of_today_has_its_time_of_day():
    now = timezone.now()
    with Preferences("en", "UTC").applied():
        assert f">{now:%H:%M}</time>" in dates.timestamp(now, "clock")
        assert ">Mar 4, 2025, 15:06</time>" in dates.timestamp(MOMENT, "clock")


@pytest.mark.django_db
def test_the_browsers_zone_is_saved_at_the_first_page(person, person_client):
    person_client.cookies["ashiato_zone"] = "Asia/Tokyo"
    person_client.get("/approvals/")
    person_client.cookies["ashiato_zone"] = "Europe/Paris"
    person_client.get("/approvals/")

    person.refresh_from_db()
    assert profiles.of_user(person).time_zone == "Asia/Tokyo"


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "\ud800", "x" * 5000])
def test_an_unknown_zone_of_a_browser_is_ignored(zone, person, person_client):
    person_client.cookies["ashiato_zone"] = zone.encode("utf-8", "replace").decode()

    assert person_client.get("/approvals/").status_code == 200
    person.refresh_from_db()
    assert profiles.of_user(person).time_zone == ""


@pytest.mark.django_db
def test_a_page_is_in_the_language_and_zone_of_its_user(person, person_client):
    profiles.save_setting(person, language="ja", time_zone="Asia/Tokyo")
    page = person_client.get("/approvals/")

    assert page.headers["Content-Language"] == "ja"
    assert 'lang="ja"' in page.text
    assert timezone.get_current_timezone_name() == "UTC"
    assert translation.get_language() == "en"


def test_quotas_and_schedules_stay_in_the_installations_zone(settings):
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with Preferences("en", "Asia/Tokyo").applied():
        assert schedules.next_time("0 15 * * *", noon) == datetime(2026, 1, 1, 15, tzinfo=UTC)


def test_lists_and_records_of_the_console_have_the_users_dates(administrator, admin_client):
    started = datetime(2025, 3, 4, 20, 6, 7, tzinfo=UTC)
    run = Run.objects.create(
        user=administrator, query="6 * 7", stopped_reason="max_steps_reached"
    )
    Run.objects.filter(pk=run.pk).update(started_at=started, ended_at=started)
    profiles.save_setting(administrator, time_zone="Asia/Tokyo", date_format="dmy")

    listed = admin_client.get("/admin/agents/run/").text
    record = admin_client.get(f"/admin/agents/run/{run.pk}/change/").text

    for page in (listed, record):
        assert 'title="05/03/2025 05:06:07 (Asia/Tokyo, UTC+09:00)"' in page
        assert "Max steps reached" in page
        assert "max_steps_reached</" not in page
