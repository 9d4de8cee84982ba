"""The pages of problems: what is listed, what can be done, and for whom."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import override

from agents.engine.sentences import Sentence
from agents.insight.problems import counting, findings, presentation, status
from agents.insight.problems.models import Problem
from agents.models import ReviewScope, Run
from tests.conftest import as_staff

pytestmark = pytest.mark.django_db
LIST = reverse("admin:problems_problem_changelist")


@pytest.fixture
def problem(make_run):
    run = make_run(detail="Order 1 of ada@example.com not found")
    counting.record(findings.find([Run.objects.get(pk=run.pk)]))
    return Problem.objects.get()


def page(problem):
    return reverse("admin:problems_problem_change", args=[problem.pk])


def decide(client, problem, action, **more):
    address = reverse("admin:problems_problem_decide", args=[problem.pk])
    about = {"seen": problem.status, "action": action, **more}
    return client.post(address, about, follow=True).text


def test_the_list_has_title_figures_and_trend(admin_client, problem):
    html = admin_client.get(LIST).text

    assert "Order ‹number› of ‹email› not found" in html
    assert "mini-chart" in html
    assert "ada@example.com" not in html


def test_tabs_divide_by_status_and_assignee(admin_client, problem, administrator):
    status.assign(administrator, problem, administrator)
    assert "1 time" not in admin_client.get(LIST, {"view": "resolved"}).text
    assert list(admin_client.get(LIST, {"view": "mine"}).context["cl"].result_list) == [problem]
    status.resolve(administrator, problem)

    assert "No open problems" in admin_client.get(LIST).text
    assert list(admin_client.get(LIST, {"view": "resolved"}).context["cl"].result_list) == [
        problem
    ]


def test_a_list_page_takes_as_many_queries_for_many_rows(admin_client, make_run, problem):
    def queries():
        with CaptureQueriesContext(connection) as found:
            admin_client.get(LIST)
        return len(found)

    admin_client.get(LIST)
    few = queries()
    runs = [make_run(detail=f"Broken {word}") for word in ("one", "two", "three", "four")]
    counting.record(findings.find(runs))
    assert queries() == few


def test_resolve_and_open_again(admin_client, problem):
    assert "Open again" in decide(admin_client, problem, "resolve")
    problem.refresh_from_db()
    assert problem.status == "resolved"
    decide(admin_client, problem, "reopen")
    problem.refresh_from_db()
    assert problem.is_open


def test_an_outdated_page_changes_nothing(admin_client, problem, administrator):
    status.ignore(administrator, Problem.objects.get())

    assert "changed in the meantime" in decide(admin_client, problem, "resolve")
    assert Problem.objects.get().status == "ignored"


def test_several_are_resolved_at_once(admin_client, problem):
    picked = {"action": "resolve", "_selected_action": [problem.pk], "index": 0}
    answer = admin_client.post(LIST, picked, follow=True).text

    assert "1 problem changed." in answer
    assert Problem.objects.get().status == "resolved"


def test_without_the_right_to_change_there_are_no_actions(person, problem):
    client = as_staff(person, "view_problem")
    html = client.get(page(problem)).text
    address = reverse("admin:problems_problem_decide", args=[problem.pk])

    assert "Order ‹number›" in html
    assert 'value="resolve"' not in html
    assert client.post(address, {"action": "resolve"}).status_code == 403


def test_people_are_counted_only_for_reviewers_and_examples_are_masked(
    stranger, problem, admin_client
):
    seen = admin_client.get(page(problem)).text
    assert "What is it?" in seen
    hidden = as_staff(stranger, "view_problem").get(page(problem)).text

    assert "<dt>Users</dt>" in seen
    assert "<dt>Users</dt>" not in hidden
    assert "What is it?" not in hidden


def test_a_scoped_reviewer_sees_only_problems_of_their_agents(stranger, problem, agent):
    client = as_staff(stranger, "view_problem", "review_runs")
    scope = ReviewScope.objects.create(user=stranger)
    assert client.get(page(problem)).status_code == 404
    scope.agents.add(agent)

    assert client.get(page(problem)).status_code == 200


def test_the_title_of_a_paused_model_is_in_the_readers_language():
    message = Sentence(
        "%(name)s has failed %(n)s times in a row. Next retry in %(seconds)s s.",
        name="GPT",
        n="‹number›",
        seconds="‹number›",
    )

    with override("ja"):
        title = presentation.title(Problem(message=message))

    assert "GPT" in title
    assert "failed" not in title


def test_failed_runs_of_the_trace_list_are_grouped_by_problem(
    admin_client, person_client, make_run, problem
):
    again = make_run(detail="Order 2 of bob@example.com not found")
    counting.record(findings.find([again]))
    fresh = make_run(detail="Not looked at yet.")
    make_run(status="completed", stopped_reason="completed", detail="")

    found = admin_client.get("/traces/?group=problem")

    groups = [
        (group.heading.title, [row.view.run.pk for row in group.rows], group.heading.url)
        for group in found.context["groups"]
    ]
    first = problem.occurrences.order_by("pk").first().run_id
    assert groups == [
        ("Order ‹number› of ‹email› not found", [again.pk, first], page(problem)),
        ("No problem found yet", [fresh.pk], ""),
    ]
    assert "Group by: Problem" not in person_client.get("/traces/?group=problem").text


def test_groups_take_as_many_queries_for_many_problems(admin_client, make_run):
    def queries():
        with CaptureQueriesContext(connection) as found:
            admin_client.get("/traces/?group=problem")
        return len(found)

    def fail(count):
        for number in range(count):
            name = "x" * (number + 5)
            counting.record(findings.find([make_run(detail=f"The tool {name} broke.")]))

    fail(1)
    queries()
    few = queries()
    fail(6)
    assert queries() == few
