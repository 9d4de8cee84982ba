"""Two versions of an agent compared, with intervals, n and coverage."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.insight.dashboard import reports, versions
from agents.metering.figures import catch_up
from agents.metering.figures.selection import Viewer
from agents.metering.figures.windows import last_days
from agents.review.experiments.models import Experiment, ExperimentResult
from agents.review.models import Example
from tests.insight.dashboard.scripted import Script

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent")]
PAGE = reverse("dashboard:versions")


def make_runs(person, version, count, failed=0):
    for number in range(count):
        reason = "error" if number < failed else "completed"
        Script(user=person, version=version, reason=reason, is_late=number < failed).save()


def test_a_clear_difference_is_named_and_a_small_one_isnt(administrator, person):
    make_runs(person, 1, 20, failed=14)
    make_runs(person, 2, 20, failed=1)
    catch_up.catch_up()
    window = last_days(7, timezone.now())
    lines = versions.compare(Viewer(administrator), window, "helper", (1, 2))
    found = {str(line.label): line for line in lines}

    assert found["Completion rate"].verdict == "Better"
    assert found["Completion rate"].sides[0].n == 20
    assert found["Completion rate"].sides[1].coverage == "100%"
    assert found["Satisfaction"].verdict == "Too little data"
    assert found["Regenerated answers"].verdict == "No measurable difference"


def score(agent, version, scores, state="passed"):
    about = {"kind": "examples", "target": "version", "state": "done"}
    experiment = Experiment.objects.create(agent=agent, version=version, **about)
    for number, (example, value) in enumerate(scores.items()):
        ExperimentResult.objects.create(
            experiment=experiment, number=number, example=example, score=value, state=state
        )


def test_versions_are_paired_on_the_same_examples(agent):
    examples = [Example.objects.create(name=f"e{n}", question="?") for n in range(8)]
    score(agent, 1, dict.fromkeys(examples, 0.4))
    score(agent, 2, {e: 0.4 + n / 10 for n, e in enumerate(examples[:7])})
    score(agent, 2, {examples[7]: None}, state="diverged")
    pairs = versions.load_pairs(agent.name, (1, 2))

    assert (pairs.n, pairs.diverged, pairs.better, pairs.worse) == (7, 1, 6, 0)
    assert pairs.difference == "+30.0 pts"
    assert pairs.verdict == "Better"
    assert versions.load_pairs(agent.name, (1, 3)) is None


def test_the_page_compares_the_two_newest_versions(admin_client, person):
    assert "No agent has runs of two versions yet" in admin_client.get(PAGE).text
    for version in (1, 2, 3):
        make_runs(person, version, 2)
    answer = admin_client.get(PAGE)

    assert (answer.context["old"], answer.context["new"]) == (2, 3)
    assert "n 2 in 2 chats" in answer.text
    assert admin_client.get(PAGE, {"old": "1", "new": "x"}).context["old"] == 1


def test_a_report_has_the_figures_of_a_period(administrator, person):
    make_runs(person, 1, 3, failed=1)
    today = timezone.localdate()
    report = reports.load_report(administrator, 7, until=today)

    assert report["runs"].value == 3
    assert report["completion"].text == "66.7%"
    assert str(today) in report.path


def test_versions_are_offered_before_their_day_is_added_up(admin_client, person):
    yesterday = timezone.now() - timedelta(days=1)
    for version in (1, 2):
        Script(user=person, version=version, began=yesterday).save()

    assert admin_client.get(PAGE).context["numbers"] == [2, 1]
