"""Evaluation as reviewers read it: of the agents in their scope, masked, and read-only."""

import re

import pytest

from agents.models import Agent, AuditEntry, ReviewScope, Run
from agents.review.experiments.models import Experiment
from agents.review.models import Example, ExampleSet
from tests.conftest import as_user
from tests.review.conftest import MAIL, PERSONAL, may

pytestmark = pytest.mark.django_db(transaction=True)

SETS = "/admin/review/exampleset/"
EXAMPLES = "/admin/review/example/"
EXPERIMENTS = "/admin/experiments/experiment/"


@pytest.fixture
def reviewer(django_user_model):
    """A user with what the role has."""
    names = ("review_runs", "view_problem", "view_dashboard")
    return may(django_user_model.objects.create_user("rei"), *names)


@pytest.fixture
def clerk(personal_run):
    return personal_run.agent


@pytest.fixture
def example_set(clerk):
    return ExampleSet.objects.create(name="Letters")


@pytest.fixture
def recorded(personal_run, example_set):
    """An example of another user's run, saved with its personal data."""
    return Example.objects.create(
        name=personal_run.query,
        example_set=example_set,
        run=personal_run,
        agent=personal_run.agent,
        agent_name="clerk",
        question=personal_run.query,
        expected=personal_run.answer,
        checks=[{"kind": "contains", "value": MAIL, "tolerance": ""}],
        tags=MAIL,
    )


@pytest.fixture
def experiment(recorded, clerk, personal_run):
    experiment = Experiment.objects.create(
        kind="examples", state="done", example_set=recorded.example_set, agent=clerk, score=0.5
    )
    tested = Run.objects.create(topic="experiment.1", agent=clerk, answer=f"Ask {MAIL}!")
    experiment.results.create(
        number=1,
        name=recorded.name,
        state="failed",
        example=recorded,
        origin=personal_run,
        run=tested,
        checks=[
            {"kind": "contains", "value": MAIL, "passed": False, "detail": "", "score": 0.0}
        ],
    )
    return experiment


@pytest.fixture
def pages(recorded, experiment):
    return [
        SETS,
        f"{SETS}{recorded.example_set_id}/",
        EXAMPLES,
        f"{EXAMPLES}?example_set__id__exact={recorded.example_set_id}",
        f"{EXAMPLES}{recorded.pk}/change/",
        EXPERIMENTS,
        f"{EXPERIMENTS}{experiment.pk}/change/",
    ]


def test_reviewers_read_evaluation_without_personal_data(pages, reviewer, personal_run):
    client = as_user(reviewer)
    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200, page
        assert not any(secret in answer.text for secret in PERSONAL), page
    assert "Who is ‹email›?" in client.get(pages[4]).text
    assert f'href="/traces/{personal_run.pk}/"' in client.get(pages[4]).text
    viewed = AuditEntry.objects.by(reviewer).filter(action="run.viewed")
    assert viewed.count() == 1


def test_the_menu_of_a_reviewer_has_evaluation_in_the_same_shell(pages, reviewer):
    page = as_user(reviewer).get(SETS)

    tabs = {entry["app_label"]: entry["models"] for entry in page.context["available_apps"]}
    keys = [tab["key"] for tab in tabs["evaluation"]]
    assert keys == ["review.ExampleSet", "review.Example", "experiments.Experiment"]
    assert f'href="{SETS}"' in as_user(reviewer).get("/review/").text


def test_every_link_of_these_pages_opens_for_reviewers(pages, reviewer):
    client = as_user(reviewer)
    text = "".join(client.get(page).text for page in pages)
    links = {*re.findall(r'href="(/(?:admin|traces|review)/[^"?#]*)', text)}

    assert len(links) > 5
    assert [link for link in sorted(links) if client.get(link).status_code != 200] == []


def test_an_own_run_is_not_masked(pages, person, recorded):
    reader = may(person, "review_runs")

    assert MAIL in as_user(reader).get(f"{EXAMPLES}{recorded.pk}/change/").text


def test_reviewers_see_nothing_of_agents_out_of_their_scope(pages, reviewer, recorded, clerk):
    scope = ReviewScope.objects.create(user=reviewer)
    scope.agents.add(Agent.objects.create(name="other"))
    client = as_user(reviewer)

    for page in (SETS, EXAMPLES, EXPERIMENTS):
        assert client.get(page).context["cl"].result_count == 0, page
        assert "clerk" not in client.get(page).text
    for page in (pages[1], pages[4], pages[6]):
        assert client.get(page).status_code == 404, page
    assert "Letters" not in client.get(pages[3]).text

    scope.agents.add(clerk)
    assert all(client.get(page).status_code == 200 for page in pages)


def test_results_of_examples_out_of_scope_are_left_out(reviewer, experiment, clerk):
    """An experiment of one's agent can ask what another agent was asked."""
    other = Agent.objects.create(name="other")
    Experiment.objects.update(agent=other)
    ReviewScope.objects.create(user=reviewer).agents.add(other)

    page = as_user(reviewer).get(f"{EXPERIMENTS}{experiment.pk}/change/")

    assert page.status_code == 200
    assert page.context["view"].rows == []
    overview = as_user(reviewer).get(f"{SETS}{experiment.example_set_id}/")
    assert overview.context["example_count"] == 0
    assert overview.context["experiments"] == [experiment]


def test_examples_by_hand_are_for_the_agent_of_their_set(reviewer, example_set, clerk):
    ReviewScope.objects.create(user=reviewer).agents.add(clerk)
    other = Agent.objects.create(name="other")
    theirs = ExampleSet.objects.create(name="Theirs", agent=other)
    for name, found_in in (("a", example_set), ("b", theirs)):
        Example.objects.create(name=name, question=name, example_set=found_in)
    Example.objects.create(
        name="c", question="c", example_set=example_set, agent=other, agent_name="other"
    )
    other_agents = Agent.objects.filter(pk=other.pk)

    def listed(url):
        rows = as_user(reviewer).get(url).context["cl"].result_list
        return [row.name for row in rows]

    assert (listed(EXAMPLES), listed(SETS)) == (["a"], ["Letters"])
    theirs.delete()
    other_agents.delete()
    assert listed(EXAMPLES) == ["a"]


def test_reviewers_change_and_run_nothing(pages, reviewer, recorded, experiment):
    client = as_user(reviewer)
    pk = recorded.example_set_id
    closed = [f"{SETS}add/", f"{SETS}{pk}/change/", f"{SETS}{pk}/run/", f"{SETS}{pk}/import/"]
    closed += [f"{SETS}{pk}/export.csv", f"{EXAMPLES}add/", f"{EXAMPLES}{recorded.pk}/delete/"]
    closed += [f"{EXPERIMENTS}{experiment.pk}/cancel/"]

    for page in closed:
        assert "/login/" in client.post(page).headers["Location"], page
    changed = client.post(f"{EXAMPLES}{recorded.pk}/change/", {"name": "x"})
    assert changed.status_code == 403
    action = {"action": "delete_selected", "_selected_action": [recorded.pk], "post": "yes"}
    client.post(EXAMPLES, action)
    assert Example.objects.get().name == recorded.name
    text = client.get(pages[1]).text
    assert "export.csv" not in text
    assert "/run/" not in text


def test_masked_text_is_not_searched(pages, reviewer):
    for guess in (MAIL, "Who", MAIL[:4]):
        listed = as_user(reviewer).get(EXAMPLES, {"q": guess})
        assert listed.context["cl"].result_count == 0


def test_backtests_of_guardrails_stay_with_who_started_them(reviewer, experiment):
    Experiment.objects.update(kind="guardrail", spec={"name": "rule"})

    assert as_user(reviewer).get(EXPERIMENTS).context["cl"].result_count == 0
