"""The dashboard's page: figures with the runs behind them, filters, files and rights."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from agents.metering.figures import rollups
from agents.models import HiddenTopic, ReviewScope
from agents.review.filters.filter_language import parse
from agents.review.models import Rating, Review
from agents.review.run_list import listing
from tests.conftest import as_staff
from tests.insight.dashboard.scripted import Script

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent")]
PAGE = reverse("dashboard:overview")
# Figures that count runs: their list has exactly as many.
COUNTS = [
    *("runs", "completed", "failed", "blocked", "cancelled", "over_budget", "limited"),
    *("interrupted", "corrected", "unpriced", "guarded"),
]

QUICK_ROWS = [("1d", "time"), ("7d", "version"), ("7d", "tool"), ("7d", "person")]


def listed(url, user):
    """Return how many runs the list behind a link has."""
    asked = parse(parse_qs(urlsplit(url).query)["q"][0], is_reviewer=True)
    assert not asked.problems
    return listing.load_page(user, asked, listing.Cursor()).count


def lines(answer):
    return {
        line.metric.key: line
        for _name, _label, found in answer.context["groups"]
        for line in found
    }


@pytest.fixture
def runs(person, stranger):
    yesterday = datetime.now(UTC) - timedelta(days=1)
    made = [
        Script(user=person, agent="helper", calls=[("database", "failed")]),
        Script(user=person, agent="my planner", version=3, plans=2, hits=["mask"]),
        Script(user=stranger, reason="error", is_late=True, began=yesterday),
        Script(user=stranger, reason="cancelled", costs=[None], began=yesterday),
        Script(user=stranger, reason="budget_exceeded", model="demo/one-more"),
        Script(user=person, reason="max_steps_reached", version=None),
        Script(user=person, reason="blocked", began=yesterday - timedelta(days=9)),
    ]
    saved = [script.save() for script in made]
    Rating.objects.create(run=saved[0], user=person, is_good=True)
    Review.objects.create(run=saved[1], correction="42")
    return saved


@pytest.mark.parametrize("is_rolled", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_every_count_links_to_a_list_with_exactly_that_many_runs(
    admin_client, administrator, runs, is_rolled
):
    admin_client.get(PAGE)
    if is_rolled:
        rollups.roll_up_days()
    found = lines(admin_client.get(PAGE))
    for key in COUNTS:
        line = found[key]
        for cell in (line.current, line.previous):
            if cell.url:
                assert listed(cell.url, administrator) == cell.value, key
    assert found["runs"].current.value == 6
    assert found["blocked"].previous.value == 1
    rates = {"completion": 2, "errors": 1, "timeouts": 1, "replans": 1, "satisfaction": 1}
    assert {key: listed(found[key].current.url, administrator) for key in rates} == rates


@pytest.mark.parametrize(
    ("period", "by"),
    [
        *QUICK_ROWS,
        *(
            pytest.param(period, by, marks=pytest.mark.thorough)
            for period in ("1d", "7d")
            for by in ("agent", "version", "model", "tool", "person", "group", "time")
            if (period, by) not in QUICK_ROWS
        ),
    ],
)
def test_every_row_links_to_its_own_runs(admin_client, administrator, person, runs, by, period):
    person.groups.add(Group.objects.create(name="Sales team"))
    table = admin_client.get(PAGE, {"by": by, "period": period}).context["table"]

    assert table.rows
    for row in table.rows:
        runs_cell = row.cells[0]
        assert listed(runs_cell.url, administrator) == runs_cell.value if runs_cell.value else 1


def test_filters_combine_and_are_kept_in_links(admin_client, administrator, person, runs):
    chosen = {"agent": "helper", "person": person.pk, "by": "tool"}
    answer = admin_client.get(PAGE, chosen)

    assert lines(answer)["runs"].current.value == 2
    assert listed(lines(answer)["runs"].current.url, administrator) == 2
    assert {chip.text for chip in answer.context["chips"]} == {"helper", "ada"}
    assert "person=" in answer.context["periods"][0]["url"]


def test_two_chosen_periods_are_compared(admin_client, runs):
    old = (runs[6].started_at - timedelta(days=1)).date()
    new = (runs[6].started_at + timedelta(days=1)).date()
    answer = admin_client.get(PAGE, {"vs_from": str(old), "vs_to": str(new)})
    assert lines(answer)["runs"].previous.value == 1


def test_a_deleted_chat_still_counts_and_the_page_says_so(admin_client, runs):
    HiddenTopic.objects.create(topic=runs[0].topic, user=None)
    answer = admin_client.get(PAGE)
    assert lines(answer)["runs"].current.value == 6
    assert answer.context["deleted"] == 1
    assert "can't be opened" in answer.text

    runs[0].delete()
    answer = admin_client.get(PAGE)
    assert lines(answer)["runs"].current.value == 6
    assert answer.context["deleted"] == 1


def test_satisfaction_is_never_a_bare_percentage(admin_client, runs):
    answer = admin_client.get(PAGE)
    cards = {card.metric.key: card for card in answer.context["cards"]}
    assert cards["satisfaction"].note == "1 rating, 16.7% of runs"
    assert "<small>1 of 1</small>" in answer.text


def test_an_unknown_price_is_shown_as_such(admin_client, runs):
    answer = admin_client.get(PAGE)
    assert lines(answer)["unpriced"].current.value == 1
    assert "1 run with an unknown price" in answer.text


def test_files_have_all_rows_and_run_no_formulas(admin_client, person):
    Script(user=person, agent="=HYPERLINK(1)").save()
    Script(user=person, agent="＋cmd").save()
    answer = admin_client.get(reverse("dashboard:export", args=["table"]))
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))

    assert {row[0] for row in rows[1:]} == {"'=HYPERLINK(1)", "'＋cmd"}
    assert rows[1][1] == "1"
    figures = admin_client.get(reverse("dashboard:export", args=["figures"])).text
    assert "Completion rate,1," in figures


def test_the_dashboard_has_a_permission_of_its_own(person, runs):
    assert as_staff(person, "review_runs").get(PAGE).status_code == 403
    answer = as_staff(person, "view_dashboard").get(PAGE)

    assert lines(answer)["runs"].current.value == 6
    assert lines(answer)["runs"].current.url == ""  # the list would have only their own


def test_people_are_for_those_who_may_see_people(person, stranger, runs):
    client = as_staff(person, "view_dashboard", "review_runs")
    answer = client.get(PAGE, {"by": "person", "person": stranger.pk})

    assert answer.context["table"].dimension == "agent"
    assert lines(answer)["runs"].current.value == 6
    assert not {"person", "group"} & {menu.name for menu in answer.context["menus"]}
    assert not re.search(r"(\b|%3D)eve\b", answer.text)


def test_a_reviewers_scope_is_respected(person, runs, agent):
    client = as_staff(person, "view_dashboard", "review_runs")
    scope = ReviewScope.objects.create(user=person)
    scope.agents.set([])
    answer = client.get(PAGE)

    assert lines(answer)["runs"].current.value == 3  # their own
    assert listed(lines(answer)["runs"].current.url, person) == 3
    assert "demo/one-more" not in answer.text


def test_a_new_installation_says_what_the_page_is_for(admin_client):
    html = admin_client.get(PAGE).text
    assert "No runs in this period" in html
    assert html.count("button primary") == 1


def test_bad_parameters_are_the_defaults(admin_client):
    bad = {"period": "x", "from": "2026-99-99", "person": "-1", "by": "x\0", "sort": "y"}
    assert admin_client.get(PAGE, bad | {"agent": "\0", "version": "9" * 30}).status_code == 200
