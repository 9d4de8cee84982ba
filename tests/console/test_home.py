"""The console's home: checklist, figures with the runs behind them, problems."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents.catalog.agent_factory import CIRCUITS
from agents.console.home.periods import PERIODS
from agents.console.language_models.model_usage import load_totals
from agents.console.system.health_checks.runs import check_failures
from agents.engine.resilience import CircuitState
from agents.insight.problems import collector
from agents.insight.problems.models import Problem
from agents.metering.figures import catch_up, windows
from agents.metering.figures.query import FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.models import (
    Agent,
    Approval,
    GuardrailHit,
    GuardrailPattern,
    PeriodicJob,
    Run,
)
from agents.review.filters.filter_language import parse
from agents.review.run_list import listing
from agents.web.figures import series
from tests.conftest import as_staff
from tests.language_models import make_model
from tests.run_usage import record_usage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent")]
HOME = reverse("admin:index")


@pytest.fixture
def make_run(person):
    def make(age: timedelta = timedelta(hours=1), **values) -> Run:
        known = {"status": "completed", "seconds": 2.0, "cost": 0.5, "agent_name": "helper"}
        topic = f"chat.{Run.objects.count()}"
        at = timezone.now() - age
        run = Run.objects.create(
            user=person, topic=topic, model="demo", query="?", ended_at=at, **known | values
        )
        Run.objects.filter(pk=run.pk).update(started_at=at)
        return record_usage(run)

    return make


def metric(answer, key):
    return next(card for card in answer.context["cards"] if card.metric.key == key)


def listed(url, user):
    """Return how many runs the list behind a link has."""
    asked = parse_qs(urlsplit(url).query)["q"][0]
    return listing.load_page(user, parse(asked, is_reviewer=True), listing.Cursor()).count


def test_imported_answers_change_no_figure_of_the_console(
    admin_client, make_run, administrator
):
    def figures_of_console():
        users = (
            admin_client.get(reverse("admin:auth_user_changelist")).context["cl"].result_list
        )
        return [
            [card.cell.text for card in admin_client.get(HOME).context["cards"]],
            str(check_failures().status),
            load_totals(administrator, [row])[row.pk].runs,
            [user.month_cost for user in users],
        ]

    row = make_model("demo", "demo")
    make_run()
    before = figures_of_console()
    for _ in range(3):
        make_run(age=timedelta(minutes=1), route=Run.IMPORTED, status="failed")

    assert figures_of_console() == before


def test_a_new_installation_starts_with_one_next_step(admin_client):
    answer = admin_client.get(HOME)
    setup, html = answer.context["setup"], answer.text

    assert [step.title for step in setup.steps][:2] == ["Connect a model", "Create an agent"]
    assert setup.next.url == reverse("admin:agents_modelconnection_add")
    assert html.count("button primary") == 1
    assert "No runs yet." in html


def test_steps_are_done_when_the_rows_say_so(admin_client, person):
    make_model("fast", "openai/gpt-4.1")
    setup = admin_client.get(HOME).context["setup"]

    done = {step.title: step.is_done for step in setup.steps}
    assert done["Connect a model"]
    assert done["Invite users"]
    assert setup.next.title == "Create an agent"


def test_inviting_people_opens_the_page_that_invites(admin_client):
    people = admin_client.get(HOME).context["setup"].steps[-1]

    assert people.url == reverse("admin:people_invitation_new")
    assert admin_client.get(people.url).status_code == 200


def test_the_checklist_can_be_hidden_and_brought_back(admin_client):
    switch = reverse("people:setup_guide")
    assert admin_client.post(switch, {"on": "0"}).url == HOME
    hidden = admin_client.get(HOME).text
    assert 'id="setup-title"' not in hidden
    assert "Show setup checklist" in hidden

    admin_client.post(switch, {"on": "1"})
    assert 'id="setup-title"' in admin_client.get(HOME).text


def test_every_figure_has_the_same_runs_as_the_list_behind_it(
    admin_client, administrator, make_run
):
    for _number in range(3):
        make_run()
    make_run(status="failed", cost=None)
    make_run(timedelta(days=9))
    answer = admin_client.get(HOME)

    assert metric(answer, "runs").cell.text == "4"
    assert metric(answer, "runs").change == "+300%"
    assert metric(answer, "cost").cell.text == "$1.50"
    assert metric(answer, "errors").cell.text == "25.0%"
    assert listed(metric(answer, "runs").cell.url, administrator) == 4
    assert listed(metric(answer, "errors").cell.url, administrator) == 1


@pytest.mark.parametrize(("key", "days"), [("7d", 7), ("30d", 30)])
def test_home_and_dashboard_mean_the_same_days(admin_client, make_run, key, days):
    now = timezone.now()
    start = windows.last_days(days, now).start
    make_run(now - start - timedelta(minutes=1))
    make_run(now - start + timedelta(minutes=1))
    make_run(status="running", seconds=None)

    assert PERIODS[key].window(now).start == start
    assert metric(admin_client.get(f"{HOME}?period={key}"), "runs").cell.text == "1"


def test_latency_is_active_time_without_waiting_for_people(admin_client, make_run):
    make_run(seconds=3_600.0, waited=3_596.0)
    make_run(timedelta(days=8), seconds=6.0)
    latency = metric(admin_client.get(HOME), "active_p95")

    assert latency.cell.value == pytest.approx(4.0, rel=0.05)
    assert (latency.change[0], latency.tone) == ("−", "better")


def test_the_period_decides_what_is_counted(admin_client, make_run):
    make_run(timedelta(hours=2))
    make_run(timedelta(days=3))
    make_run(timedelta(days=20))

    counts = [metric(admin_client.get(f"{HOME}?period={p}"), "runs").cell.text for p in PERIODS]
    assert counts == ["1", "2", "3"]
    assert metric(admin_client.get(f"{HOME}?period=nonsense"), "runs").cell.text == "2"


@pytest.mark.both_databases
@pytest.mark.parametrize("key", PERIODS)
def test_the_points_of_a_chart_are_all_runs(administrator, make_run, key):
    for hours in range(1, 1000, 7):
        make_run(timedelta(hours=hours))
    catch_up.catch_up()
    query = FiguresQuery(
        Viewer(administrator), PERIODS[key].window(timezone.now()), Selection()
    )

    points = series.load(query).points
    assert sum(point["runs"] for point in points.values()) == query.total()["runs"] > 0


def test_runs_of_temporary_chats_and_imports_are_not_counted(admin_client, make_run):
    from agents.models import HiddenTopic

    hidden = make_run()
    HiddenTopic.objects.create(topic=hidden.topic, user=hidden.user)
    make_run(seconds=None, route=Run.IMPORTED)

    assert metric(admin_client.get(HOME), "runs").cell.text == "0"


def test_the_number_of_queries_does_not_depend_on_the_number_of_runs(admin_client, make_run):
    def queries():
        with CaptureQueriesContext(connection) as asked:
            admin_client.get(HOME)
        return len(asked)

    make_run(status="failed", detail="Broken.")
    admin_client.get(HOME)
    few = queries()
    for number in range(20):
        make_run(status="failed", detail=f"Broken {number}.")
    catch_up.catch_up()
    assert queries() == few <= 60


def test_equal_failures_are_one_problem_with_a_link_to_its_page(admin_client, make_run):
    for _number in range(2):
        make_run(status="failed", detail="Ask mika.sato@example.com about the tool.")
    PeriodicJob.objects.filter(name=collector.JOB_NAME).delete()
    collector.collect_history()
    [problem] = admin_client.get(HOME).context["problems"]

    assert problem.title == "Ask ‹email› about the tool."
    assert problem.sentence == "helper · 2 times"
    assert problem.url == reverse(
        "admin:problems_problem_change", args=[Problem.objects.get().pk]
    )


def test_a_reviewer_without_the_right_to_problems_sees_runs(person, make_run):
    for _number in range(2):
        make_run(status="failed", detail="Ask mika.sato@example.com about the tool.")
    [problem] = as_staff(person, "review_runs").get(HOME).context["problems"]

    assert problem.title == "2 runs of helper failed"
    assert "mika.sato" not in problem.sentence
    assert "‹email›" in problem.sentence
    assert listed(problem.url, person) == 2


def test_a_limit_leads_to_the_agent_that_has_it(admin_client, make_run, agent):
    make_run(status="stopped", stopped_reason="budget_exceeded", agent=agent)
    make_run(status="stopped", stopped_reason="cancelled", agent=agent)
    [problem] = admin_client.get(HOME).context["problems"]

    assert problem.url == reverse("admin:agents_agent_change", args=[agent.pk])


def test_approvals_hits_and_open_circuits_are_listed(admin_client, make_run):
    run = make_run(status="waiting", seconds=None)
    asked = timezone.now() - timedelta(minutes=42)
    Approval.objects.create(
        run=run, step=1, tool="send_email", agent_name="helper", asked_at=asked
    )
    pattern = GuardrailPattern.objects.create(name="Card number", pattern="x")
    GuardrailHit.objects.create(
        run=run, pattern=pattern, step=1, stage="input", action="block", at=timezone.now()
    )
    html = admin_client.get(HOME).text

    assert "<code>send_email</code>" in html
    assert "42 minutes ago" in html
    assert "Card number" in html
    assert "1 blocked, 0 masked" in html


def test_a_model_whose_latest_runs_failed_is_unhealthy_in_every_process(
    admin_client, make_run, agent
):
    Agent.objects.update(model="demo")
    make_run(timedelta(minutes=1), status="failed", stopped_reason="error")
    make_run(timedelta(minutes=1), status="failed", stopped_reason="error")

    def is_good():
        parts = admin_client.get(HOME).context["health"].checks
        return next(part for part in parts if part.name == "Models").is_good

    assert is_good()
    make_run(timedelta(minutes=1), status="failed", stopped_reason="error")
    assert not is_good()
    make_run(timedelta(minutes=1))
    assert is_good()


def test_a_paused_tool_is_unhealthy_and_a_problem(admin_client, monkeypatch):
    paused = CircuitState(
        key="tool:search",
        label="tool:search",
        state="open",
        failures=5,
        since=timezone.now(),
        retry_in=30.0,
        error="No connection.",
    )
    monkeypatch.setattr(type(CIRCUITS), "state", lambda self: [paused])
    context = admin_client.get(HOME).context

    assert context["health"].unhealthy >= 1
    assert context["health"].checks[0].advice
    assert context["problems"][0].title == "Calls to search are paused"


def test_cards_appear_only_with_the_permission_for_what_they_link_to(person):
    bare = as_staff(person).get(HOME)
    assert "You don’t have permission" in bare.text
    assert "cards" not in bare.context
    assert "health" not in bare.context
    assert "changes" not in bare.context

    reviewer = as_staff(person, "review_runs").get(HOME)
    assert "cards" in reviewer.context
    assert "health" not in reviewer.context
    auditor = as_staff(person, "view_auditentry").get(HOME)
    assert "changes" in auditor.context
    assert "cards" not in auditor.context


def test_the_home_speaks_japanese_and_knows_the_time_zone(
    admin_client, administrator, make_run
):
    from agents.accounts.users import profiles

    profiles.save_setting(administrator, language="ja", time_zone="Asia/Tokyo")
    make_run()
    answer = admin_client.get(HOME)

    first = PERIODS["7d"].window(timezone.now()).first
    assert f"{first.month}月{first.day}日" in answer.text
    assert not re.search(r"style=", answer.text)
