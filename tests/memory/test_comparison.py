"""What learning is worth: examples on the demo model with the switch off, then on."""

import asyncio
import tomllib

import pytest

from agents import runs
from agents.llm.demo.experiences import Correction, known_answer
from agents.models import Experience, Run
from agents.review.experiments.models import ExperimentResult

from . import comparison, real_model

pytestmark = pytest.mark.django_db(transaction=True)


def compare(user, content):
    async def work():
        try:
            return await comparison.compare(user, content)
        finally:
            await runs.shut_down(hand_over=False)

    return asyncio.run(work())


@pytest.mark.thorough
@pytest.mark.slow
def test_the_set_scores_higher_with_experiences(agent, samples, administrator):
    result = compare(administrator, comparison.load_file())

    assert result.off.passed == 4  # the controls
    assert result.on.passed == result.on.count == 14
    assert result.experiences == 5


def test_the_demo_model_knows_none_of_the_house_rules():
    content = tomllib.loads(real_model.FILE.read_text("utf-8"))
    for rule in content["training"]:
        correction = Correction(rule["question"], rule["correction"])
        line = f'- Question: "{correction.question}" Correction: "{correction.text}"'
        prompt = [{"role": "system", "content": f"<experiences>\n{line}\n</experiences>"}]
        for example in content["examples"]:
            assert correction.translate(example["question"]) == example["question"]
            assert known_answer(example["question"], prompt) == ""


@pytest.mark.slow
def test_an_experience_answers_another_question(agent, samples, administrator):
    content = comparison.load_file()
    content |= {name: content[name][:1] for name in ("training", "examples")}

    result = compare(administrator, content)
    assert (result.off.score, result.on.score) == (0.0, 1.0)
    answered = ExperimentResult.objects.get(experiment=result.on)
    prompts = str([step.request for step in answered.run.steps.all()])
    assert "GMV means revenue." in prompts
    asked = Run.objects.filter(topic__startswith="trial.").values_list("query", flat=True)
    assert not set(asked) & set(Experience.objects.values_list("question", flat=True))
