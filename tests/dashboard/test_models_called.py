"""Tokens and cost belong to the model that was called; titles count; free isn't unknown."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from agents.dashboard import titles
from agents.dashboard.figures import By
from agents.dashboard.models import (
    CALL_MEASURES,
    DailyFigures,
    ModelSummary,
    RunSummary,
    StaleRun,
    TitleUsage,
)
from agents.models import LanguageModel, Run
from tests.dashboard.scripted import Script

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
USAGE = {"model": "demo/two", "prompt_tokens": 50, "completion_tokens": 5, "cost": 0.01}


@pytest.fixture
def fallen_back(person):
    """A run that started with one model and was answered by another, and one that wasn't."""
    called = ["demo/one", "demo/two", "demo/two"]
    search = [("search", "done")]
    mixed = Script(costs=[0.1, 0.2, 0.4], called=called, calls=search, user=person).save()
    return mixed, Script(costs=[0.5], user=person).save()


def figures(totals):
    return totals["runs"], totals["model_calls"], totals["input_tokens"], round(totals.cost, 6)


@pytest.mark.parametrize("is_rolled", [False, True])
def test_each_model_has_its_calls_and_the_runs_that_made_them(fallen_back, count, is_rolled):
    parts = count(By.MODEL, is_rolled=is_rolled)

    assert figures(parts["demo/one",]) == (2, 2, 200, 0.6)
    assert figures(parts["demo/two",]) == (1, 2, 200, 0.6)
    whole = count(is_rolled=is_rolled)
    for name in CALL_MEASURES:
        assert whole[name] == sum(part[name] for part in parts.values())


@pytest.mark.parametrize("by", [By.AGENT, By.PERSON, By.TOOL, By.HOUR, By.DAY, By.VERSION])
def test_one_model_is_counted_by_anything(fallen_back, count, by):
    days = 1 if by is By.HOUR else 30
    found = count(by, days, model="demo/two").values()

    assert [figures(part) for part in found] == [(1, 2, 200, 0.6)]


@pytest.mark.parametrize("chosen", [{"tool": "search"}, {"tool": "search", "person": True}])
def test_models_of_the_runs_of_a_tool(fallen_back, count, person, chosen):
    chosen |= {"person": person.pk} if "person" in chosen else {}
    parts = count(By.MODEL, **chosen)

    assert figures(parts["demo/one",]) == (1, 1, 100, 0.1)
    assert (parts["demo/two",]["tool_calls"], parts["demo/two",].cost) == (1, 0.6)


def test_deleted_runs_still_count_for_the_models_they_called(fallen_back, count):
    count()
    for run in fallen_back:
        run.delete()

    for is_rolled in (False, True):
        assert figures(count(By.MODEL, is_rolled=is_rolled)["demo/two",]) == (1, 2, 200, 0.6)


def test_the_list_of_runs_finds_those_that_called_a_model(fallen_back, count, root):
    count()
    mixed, _other = fallen_back
    page = root.get("/traces/", {"q": "called:demo/two"})

    assert f'id="run-{mixed.pk}"' in page.text or f"/traces/{mixed.pk}/" in page.text
    assert f"/traces/{_other.pk}/" not in page.text


def test_a_run_without_a_call_counts_for_the_model_it_started_with(count):
    Script(costs=[], reason="error").save()

    assert figures(count(By.MODEL)["demo/one",]) == (1, 0, 0, 0)


# Titles


@pytest.mark.parametrize("is_late", [False, True])
def test_a_title_counts_with_its_run(count, is_late):
    run = Script(costs=[0.5]).save()
    if is_late:
        count()
    titles.record(run.pk, USAGE)
    parts = count(By.MODEL)

    assert figures(parts["demo/one",]) == (1, 1, 100, 0.5)
    assert figures(parts["demo/two",]) == (1, 1, 50, 0.01)
    assert count()["title_cost"] == 10_000_000
    assert not TitleUsage.objects.filter(is_counted=False).exists()


def test_a_title_of_unknown_price_is_not_free(count):
    titles.record(Script(costs=[0.5]).save().pk, USAGE | {"cost": None})

    assert (count()["unpriced"], count()["title_cost"]) == (1, 0)


# Free models


@pytest.fixture
def local_model(db):
    LanguageModel.objects.create(label="Local", model="ollama/llama3", enabled=True)


@pytest.mark.parametrize(
    ("model", "unpriced"), [("demo", 0), ("Local", 0), ("ollama/x", 0), ("mystery/x", 1)]
)
def test_a_model_that_costs_nothing_has_a_known_price(count, local_model, model, unpriced):
    Script(costs=[None], called=[model]).save()
    totals = count()

    assert totals["unpriced"] == unpriced
    assert (totals.cost_per_run == 0) is not bool(unpriced)


def test_a_price_of_zero_is_known(count, local_model):
    LanguageModel.objects.create(label="Gift", model="mystery/x", input_price=0, output_price=0)
    Script(costs=[None], called=["Gift"]).save()

    assert count()["unpriced"] == 0


# Upgrade


def test_an_upgrade_counts_by_the_first_model_until_runs_are_summarized_again(
    fallen_back, count
):
    count()
    ModelSummary.objects.all().delete()
    DailyFigures.objects.filter(grain="model").delete()
    migration = import_module("agents.dashboard.migrations.0004_count_by_model")
    migration.count_by_model(apps, connection.schema_editor())

    assert ModelSummary.objects.count() == RunSummary.objects.count() == Run.objects.count()
    assert DailyFigures.objects.filter(grain="model", model="demo/one").exists()
    assert figures(count(By.MODEL)["demo/two",]) == (1, 2, 200, 0.6)
    assert not StaleRun.objects.exists()
