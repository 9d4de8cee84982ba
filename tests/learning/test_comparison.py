"""What learning is worth: the shipped example set on the demo model, switch off and on."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from agents.experiments import learning_demo
from agents.experiments.models import ExperimentResult
from agents.models import Experience, Run

pytestmark = pytest.mark.django_db(transaction=True)


def compare():
    out = StringIO()
    call_command("compare_learning", "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.thorough
@pytest.mark.slow
def test_the_shipped_set_scores_higher_with_experiences(agent, samples, administrator):
    report = compare()

    assert report["off"]["passed"] == 4  # the controls
    assert report["on"]["passed"] == report["on"]["count"] == 14
    assert report["experiences"] == 5


@pytest.mark.slow
def test_an_experience_answers_another_question(agent, samples, administrator, monkeypatch):
    content = learning_demo.load_file()
    content |= {name: content[name][:1] for name in ("training", "examples")}
    monkeypatch.setattr(learning_demo, "load_file", lambda: content)

    report = compare()
    assert (report["off"]["score"], report["on"]["score"]) == (0.0, 1.0)
    result = ExperimentResult.objects.get(experiment=report["on"]["experiment"])
    prompts = str([step.request for step in result.run.steps.all()])
    assert "GMV means revenue." in prompts
    asked = Run.objects.filter(topic__startswith="trial.").values_list("query", flat=True)
    assert not set(asked) & set(Experience.objects.values_list("question", flat=True))
