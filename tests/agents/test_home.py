"""The console's home: checklist, figures with the runs behind them, problems."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents.catalog.agent_factory import CIRCUITS
from agents.console.health_checks.runs import check_failures
from agents.console.home import figures
from agents.console.model_usage import load_totals, visible_runs
from agents.dashboard import windows
from agents.engine.resilience import CircuitState
from agents.models import (
    Agent,
    Approval,
    GuardrailHit,
    GuardrailPattern,
    LanguageModel,
    PeriodicJob,
    Run,
)
from agents.problems import collector
from agents.problems.models import Problem
from agents.review import listing
from agents.review.filter_language import parse

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent")]
HOME = reverse("admin:index")


@pytest.fixture
def root(administrator):
    client = Client()
    client.force_login(administrator)
    return client


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
        return run

    return make


def metric(answer, key):
    return next(one for one in answer.context["metrics"] if one.key == key)


def listed(url, user):
    """Return how many runs the list behind a link has."""
    asked = parse_qs(urlsplit(url).query)["q"][0]
    return listing.load_page(user, parse(asked, is_reviewer=True), listing.Cursor()).count


def staff(person, *permissions):
    person.is_staff = True
    person.save()
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(person)
    return client


def test_imported_answers_change_no_figure_of_the_console(root, make_run, administrator):
    def figures_of_console():
        users = root.get(reverse("admin:auth_user_changelist")).context["cl"].result_list
        return [
            root.get(HOME).context["figures"].now,
            str(check_failures().now),
            load_totals(visible_runs(administrator))["demo"].runs,
            [user.month_cost for user in users],
        ]

    make_run()
    before = figures_of_console()
    for _ in range(3):
        make_run(age=timedelta(minutes=1), route=Run.IMPORTED, status="failed")

    assert figures_of_console() == before


def test_a_new_installation_starts_with_one_next_step(root):
    answer = root.get(HOME)
    setup, html = answer.context["setup"], answer.content.decode()

    assert [step.title for step in setup.steps][:2] == ["Connect a model", "Create an agent"]
    assert setup.next.url == reverse("admin:agents_languagemodel_add")
    assert html.count("button primary") == 1
    assert "No runs yet." in html


def test_steps_are_done_when_the_rows_say_so(root, person):
    LanguageModel.objects.create(label="fast", model="openai/gpt-4.1")
    setup = root.get(HOME).context["setup"]

    done = {step.title: step.is_done for step in setup.steps}
    assert done["Connect a model"]
    assert done["Invite people"]
    assert setup.next.title == "Create an agent"


def test_inviting_people_opens_the_page_that_invites(root):
    people = root.get(HOME).context["setup"].steps[-1]

    assert people.url == reverse("admin:people_invitation_new")
    assert root.get(people.url).status_code == 200


def test_the_checklist_can_be_hidden_and_brought_back(root):
    switch = reverse("people:setup_guide")
    assert root.post(switch, {"on": "0"}).url == HOME
    hidden = root.get(HOME).content.decode()
    assert 'id="setup-title"' not in hidden
    assert "Show set-up checklist" in hidden

    root.post(switch, {"on": "1"})
    assert 'id="setup-title"' in root.get(HOME).content.decode()


def test_every_figure_has_the_same_runs_as_the_list_behind_it(root, administrator, make_run):
    for _number in range(3):
        make_run()
    make_run(status="failed", cost=None)
    make_run(timedelta(days=9))
    answer = root.get(HOME)

    assert metric(answer, "runs").value == "4"
    assert metric(answer, "runs").change == "+300%"
    assert metric(answer, "cost").value == "$1.50"
    assert metric(answer, "errors").value == "25.0%"
    assert listed(metric(answer, "runs").url, administrator) == 4
    assert listed(metric(answer, "errors").url, administrator) == 1


@pytest.mark.parametrize(("key", "days"), [("7d", 7), ("30d", 30)])
def test_home_and_dashboard_mean_the_same_days(root, make_run, key, days):
    now = timezone.now()
    start = windows.last_days(days, now).start
    make_run(now - start - timedelta(minutes=1))
    make_run(now - start + timedelta(minutes=1))
    make_run(status="running", seconds=None)

    assert figures.PERIODS[key].start(now) == start
    assert metric(root.get(f"{HOME}?period={key}"), "runs").value == "1"


def test_latency_is_active_time_without_waiting_for_people(root, make_run):
    make_run(seconds=3_600.0, waited=3_596.0)
    make_run(timedelta(days=8), seconds=6.0)
    latency = metric(root.get(HOME), "latency")

    assert latency.value == "4.0 s"
    assert (latency.change, latency.tone) == ("−2.0 s", "better")


def test_the_period_decides_what_is_counted(root, make_run):
    make_run(timedelta(hours=2))
    make_run(timedelta(days=3))
    make_run(timedelta(days=20))

    counts = [metric(root.get(f"{HOME}?period={p}"), "runs").value for p in figures.PERIODS]
    assert counts == ["1", "2", "3"]
    assert metric(root.get(f"{HOME}?period=nonsense"), "runs").value == "2"


@pytest.mark.both_databases
def test_curves_and_percentiles_are_counted_by_the_database(make_run):
    for second in range(1, 101):
        make_run(timedelta(hours=second), seconds=float(second), waited=0.5)
    found = figures.load_figures(Run.objects.all(), figures.PERIODS["7d"], timezone.now())

    assert sum(bucket.runs for bucket in found.buckets) == found.now.runs == 100
    assert found.p95 == 95.5
    assert found.now.p95 == pytest.approx(95.5, rel=0.1)
    assert [one.name for one in found.agents] == ["helper"]


def test_runs_of_temporary_chats_and_imports_are_not_counted(root, make_run):
    from agents.models import HiddenTopic

    hidden = make_run()
    HiddenTopic.objects.create(topic=hidden.topic, user=hidden.user)
    make_run(seconds=None, route=Run.IMPORTED)

    assert metric(root.get(HOME), "runs").value == "0"


def test_the_number_of_queries_does_not_depend_on_the_number_of_runs(root, make_run):
    def queries():
        with CaptureQueriesContext(connection) as asked:
            root.get(HOME)
        return len(asked)

    make_run(status="failed", detail="Broken.")
    root.get(HOME)
    few = queries()
    for number in range(20):
        make_run(status="failed", detail=f"Broken {number}.")
    assert queries() == few <= 30


def test_equal_failures_are_one_problem_with_a_link_to_its_page(root, make_run):
    for _number in range(2):
        make_run(status="failed", detail="Ask mika.sato@example.com about the tool.")
    PeriodicJob.objects.filter(name=collector.JOB_NAME).delete()
    collector.collect_history()
    [problem] = root.get(HOME).context["problems"]

    assert problem.title == "Ask ‹email› about the tool."
    assert problem.sentence == "helper · 2 times"
    assert problem.url == reverse(
        "admin:problems_problem_change", args=[Problem.objects.get().pk]
    )


def test_a_reviewer_without_the_right_to_problems_sees_runs(person, make_run):
    for _number in range(2):
        make_run(status="failed", detail="Ask mika.sato@example.com about the tool.")
    [problem] = staff(person, "review_runs").get(HOME).context["problems"]

    assert problem.title == "helper failed 2 runs"
    assert "mika.sato" not in problem.sentence
    assert "‹email›" in problem.sentence
    assert listed(problem.url, person) == 2


def test_a_limit_leads_to_the_agent_that_has_it(root, make_run, agent):
    make_run(status="stopped", stopped_reason="budget_exceeded", agent=agent)
    make_run(status="stopped", stopped_reason="cancelled", agent=agent)
    [problem] = root.get(HOME).context["problems"]

    assert problem.url == reverse("admin:agents_agent_change", args=[agent.pk])


def test_approvals_hits_and_open_circuits_are_listed(root, make_run):
    run = make_run(status="waiting", seconds=None)
    asked = timezone.now() - timedelta(minutes=42)
    Approval.objects.create(
        run=run, step=1, tool="send_email", agent_name="helper", asked_at=asked
    )
    pattern = GuardrailPattern.objects.create(name="Card number", pattern="x")
    GuardrailHit.objects.create(
        run=run, pattern=pattern, step=1, stage="input", action="block", at=timezone.now()
    )
    html = root.get(HOME).content.decode()

    assert "<code>send_email</code>" in html
    assert "42 minutes ago" in html
    assert "Card number" in html
    assert "1 blocked, 0 masked" in html


def test_a_model_whose_latest_runs_failed_is_unhealthy_in_every_process(root, make_run, agent):
    Agent.objects.update(model="demo")
    make_run(timedelta(minutes=1), status="failed", stopped_reason="error")
    make_run(timedelta(minutes=1), status="failed", stopped_reason="error")

    def is_good():
        parts = root.get(HOME).context["health"].parts
        return next(part for part in parts if part.what == "Models").is_good

    assert is_good()
    make_run(timedelta(minutes=1), status="failed", stopped_reason="error")
    assert not is_good()
    make_run(timedelta(minutes=1))
    assert is_good()


def test_a_paused_tool_is_unhealthy_and_a_problem(root, monkeypatch):
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
    context = root.get(HOME).context

    assert context["health"].unhealthy >= 1
    assert context["health"].parts[0].advice
    assert context["problems"][0].title == "Calls of search are paused"


def test_cards_appear_only_with_the_permission_for_what_they_link_to(person):
    bare = staff(person).get(HOME)
    assert "You don’t have permission" in bare.content.decode()
    assert "metrics" not in bare.context
    assert "health" not in bare.context
    assert "changes" not in bare.context

    reviewer = staff(person, "review_runs").get(HOME)
    assert "metrics" in reviewer.context
    assert "health" not in reviewer.context
    auditor = staff(person, "view_auditentry").get(HOME)
    assert "changes" in auditor.context
    assert "metrics" not in auditor.context


def test_the_home_speaks_japanese_and_knows_the_time_zone(root, administrator, make_run):
    from agents.accounts import profiles

    profiles.save_setting(administrator, language="ja", time_zone="Asia/Tokyo")
    make_run()
    answer = root.get(HOME)

    since = figures.PERIODS["7d"].start(timezone.now())
    local = since.astimezone(timezone.get_fixed_timezone(9 * 60))
    assert f"{local.month}月{local.day}日" in answer.content.decode()
    assert not re.search(r"style=", answer.content.decode())
