"""The pages of problems: what is listed, what can be done, and for whom."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import override

from agents.models import ReviewScope, Run
from agents.problems import counting, findings, presentation, status
from agents.problems.models import Problem

pytestmark = pytest.mark.django_db
LIST = reverse("admin:problems_problem_changelist")


@pytest.fixture
def root(administrator):
    client = Client()
    client.force_login(administrator)
    return client


@pytest.fixture
def problem(make_run):
    run = make_run(detail="Order 1 of ada@example.com not found")
    counting.record(findings.find([Run.objects.get(pk=run.pk)]))
    return Problem.objects.get()


def staff(user, *codes):
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client = Client()
    client.force_login(user)
    return client


def page(problem):
    return reverse("admin:problems_problem_change", args=[problem.pk])


def decide(client, problem, action, **more):
    address = reverse("admin:problems_problem_decide", args=[problem.pk])
    about = {"seen": problem.status, "action": action, **more}
    return client.post(address, about, follow=True).content.decode()


def test_the_list_has_title_figures_and_trend(root, problem):
    html = root.get(LIST).content.decode()

    assert "Order ‹number› of ‹email› not found" in html
    assert "mini-chart" in html
    assert "ada@example.com" not in html


def test_tabs_divide_by_status_and_assignee(root, problem, administrator):
    status.assign(administrator, problem, administrator)
    assert "1 time" not in root.get(LIST, {"view": "resolved"}).content.decode()
    assert list(root.get(LIST, {"view": "mine"}).context["cl"].result_list) == [problem]
    status.resolve(administrator, problem)

    assert "No open problems" in root.get(LIST).content.decode()
    assert list(root.get(LIST, {"view": "resolved"}).context["cl"].result_list) == [problem]


def test_a_list_page_takes_as_many_queries_for_many_rows(root, make_run, problem):
    def queries():
        with CaptureQueriesContext(connection) as found:
            root.get(LIST)
        return len(found)

    root.get(LIST)
    few = queries()
    runs = [make_run(detail=f"Broken {word}") for word in ("one", "two", "three", "four")]
    counting.record(findings.find(runs))
    assert queries() == few


def test_resolve_and_open_again(root, problem):
    assert "Open again" in decide(root, problem, "resolve")
    problem.refresh_from_db()
    assert problem.status == "resolved"
    decide(root, problem, "reopen")
    problem.refresh_from_db()
    assert problem.is_open


def test_an_outdated_page_changes_nothing(root, problem, administrator):
    status.ignore(administrator, Problem.objects.get())

    assert "changed meanwhile" in decide(root, problem, "resolve")
    assert Problem.objects.get().status == "ignored"


def test_several_are_resolved_at_once(root, problem):
    picked = {"action": "resolve", "_selected_action": [problem.pk], "index": 0}
    answer = root.post(LIST, picked, follow=True).content.decode()

    assert "1 problem changed." in answer
    assert Problem.objects.get().status == "resolved"


def test_without_the_right_to_change_there_are_no_actions(person, problem):
    client = staff(person, "view_problem")
    html = client.get(page(problem)).content.decode()
    address = reverse("admin:problems_problem_decide", args=[problem.pk])

    assert "Order ‹number›" in html
    assert 'value="resolve"' not in html
    assert client.post(address, {"action": "resolve"}).status_code == 403


def test_people_are_counted_only_for_reviewers_and_examples_are_masked(stranger, problem, root):
    seen = root.get(page(problem)).content.decode()
    assert "What is it?" in seen
    hidden = staff(stranger, "view_problem").get(page(problem)).content.decode()

    assert "<dt>People</dt>" in seen
    assert "<dt>People</dt>" not in hidden
    assert "What is it?" not in hidden


def test_a_scoped_reviewer_sees_only_problems_of_their_agents(stranger, problem, agent):
    client = staff(stranger, "view_problem", "review_runs")
    scope = ReviewScope.objects.create(user=stranger)
    assert client.get(page(problem)).status_code == 404
    scope.agents.add(agent)

    assert client.get(page(problem)).status_code == 200


def test_the_title_of_a_paused_model_is_in_the_readers_language():
    message = "GPT has failed ‹number› times in a row. Next retry in ‹duration›."

    with override("ja"):
        title = presentation.title(Problem(message=message))

    assert "GPT" in title
    assert "failed" not in title
