"""Tokens and cost belong to the model that was called; titles count; free isn't unknown."""

import pytest

from agents.metering.figures import catch_up, titles
from agents.metering.figures.models import CALL_MEASURES, ModelSummary, RunSummary, TitleUsage
from agents.metering.figures.query import By
from tests.insight.dashboard.scripted import Script
from tests.language_models import make_model

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


@pytest.mark.parametrize("by", [By.AGENT, By.PERSON, By.TOOL, By.BUCKET, By.DAY, By.VERSION])
def test_one_model_is_counted_by_anything(fallen_back, count, by):
    days = 1 if by is By.BUCKET else 30
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


def test_the_list_of_runs_finds_those_that_called_a_model(fallen_back, count, admin_client):
    count()
    mixed, _other = fallen_back
    page = admin_client.get("/traces/", {"q": "called:demo/two"})

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


@pytest.mark.parametrize("cost", [0.01, None])
def test_a_title_counts_if_its_run_is_deleted_before_it_is_counted(count, cost):
    run = Script(costs=[0.5]).save()
    count()
    titles.record(run.pk, USAGE | {"cost": cost})
    run.delete()

    assert figures(count()) == (1, 2, 150, 0.5 + (cost or 0))
    assert (count()["unpriced"], figures(count(By.MODEL)["demo/two",])) == (
        int(cost is None),
        (1, 1, 50, cost or 0),
    )


def test_the_reason_why_a_title_is_not_saved_is_logged(caplog):
    run = Script().save()
    titles.record(run.pk, USAGE)
    titles.record(run.pk, USAGE)

    assert TitleUsage.objects.count() == 1
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "unique" in record.getMessage().lower()


# Unknown prices


@pytest.mark.parametrize("is_rolled", [False, True])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_model_has_a_cost_per_run_if_only_another_one_has_no_price(
    count, is_rolled, is_deleted
):
    run = Script(costs=[0.5, None], called=["demo/one", "mystery/judge"]).save()
    if is_deleted:
        count()
        run.delete()
    parts = count(By.MODEL, is_rolled=is_rolled)

    assert parts["demo/one",].cost_per_run == 0.5
    assert parts["mystery/judge",].cost_per_run is None
    assert count(is_rolled=is_rolled)["unpriced"] == 1


# Free models


@pytest.fixture
def local_model(db):
    make_model("Local", "ollama/llama3", enabled=True)


@pytest.mark.parametrize(
    ("model", "unpriced"), [("demo", 0), ("Local", 0), ("ollama/x", 0), ("mystery/x", 1)]
)
def test_a_model_that_costs_nothing_has_a_known_price(count, local_model, model, unpriced):
    Script(costs=[None], called=[model]).save()
    totals = count()

    assert totals["unpriced"] == unpriced
    assert (totals.cost_per_run == 0) is not bool(unpriced)


def test_a_price_of_zero_is_known(count, local_model):
    make_model("Gift", "mystery/x", input_price=0, output_price=0)
    Script(costs=[None], called=["Gift"]).save()

    assert count()["unpriced"] == 0


def test_runs_that_an_earlier_version_summarized_are_summarized_again_the_newest_first(
    fallen_back, count
):
    count()
    ModelSummary.objects.all().delete()
    RunSummary.objects.update(version=0)

    assert catch_up.catch_up(1) == 1
    assert RunSummary.objects.get(version=0).run == fallen_back[0]
    assert figures(count(By.MODEL)["demo/two",]) == (1, 2, 200, 0.6)
