"""Pages of example sets, examples and experiments."""

import json
import re

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.console.agent_admin.agent_editor import drafts
from agents.engine.testing import Says
from agents.models import Agent, Run, ToolRegistration
from agents.review.experiments.models import Experiment
from agents.review.models import Example, ExampleSet
from tests.conftest import as_async_user, as_user, run_question

from .conftest import SUM, finish, run_set

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

SETS = "/admin/review/exampleset/"
CHECKS = {"checks-kind": ["number"], "checks-value": ["42"], "checks-tolerance": ["1%"]}


def test_the_pages_of_a_set_open(admin_client, example):
    pk = example.example_set.pk
    paths = ["", f"{pk}/", f"{pk}/change/", f"{pk}/run/", f"{pk}/import/", "add/"]

    pages = [admin_client.get(f"{SETS}{path}") for path in paths]

    assert [page.status_code for page in pages] == [200] * len(paths)
    assert "Not run yet" in pages[1].text
    assert "about 2 model calls" in pages[3].text


def test_an_example_is_added_by_hand_with_checks(admin_client, example_set):
    form = {"example_set": example_set.pk, "question": "6 * 7?", "tags": "a, b,a", **CHECKS}

    answer = admin_client.post("/admin/review/example/add/", form)

    assert answer.headers["Location"].endswith(f"?example_set__id__exact={example_set.pk}")
    saved = Example.objects.get()
    assert (saved.name, saved.tags) == ("6 * 7?", "a, b")
    assert saved.checks == [{"kind": "number", "value": "42", "tolerance": "1%"}]


def test_an_invalid_check_is_refused_and_what_was_typed_stays(admin_client, example_set):
    form = {"example_set": example_set.pk, "question": "6 * 7?", **CHECKS}
    form["checks-value"] = ["about forty"]

    answer = admin_client.post("/admin/review/example/add/", form)

    assert "“about forty” isn&#x27;t a number." in answer.text
    assert ">about forty</textarea>" in answer.text


def test_a_question_that_the_set_has_is_refused(admin_client, example):
    form = {"example_set": example.example_set.pk, "question": example.question}

    answer = admin_client.post("/admin/review/example/add/", form)

    assert "The set already has this question: The sum." in answer.text
    assert Example.objects.count() == 1


def test_a_file_is_imported_with_a_result_per_row(admin_client, example):
    rows = [
        {"question": "1 + 1?", "checks": [{"kind": "contains", "value": "2"}]},
        {"question": example.question},
        {"question": "3?", "checks": [{"kind": "magic", "value": "2"}]},
        {"expected": "no question"},
    ]
    text = "\n".join([*map(json.dumps, rows), "not json"])
    upload = SimpleUploadedFile("examples.jsonl", text.encode())

    answer = admin_client.post(f"{SETS}{example.example_set.pk}/import/", {"file": upload})

    assert "1 example added" in answer.text
    for reason in ("already has this question", "isn’t a check", "question is empty", "JSON"):
        assert reason.replace("’", "&#x27;") in answer.text, reason
    assert Example.objects.count() == 2


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_exported_set_can_be_imported_again(admin_client, example, form):
    example.checks, example.question = [{"kind": "contains", "value": "42"}], "=6*7, or?"
    example.save()
    written = admin_client.get(f"{SETS}{example.example_set.pk}/export.{form}").content
    other = ExampleSet.objects.create(name="Copy")
    upload = SimpleUploadedFile(f"examples.{form}", written)

    admin_client.post(f"{SETS}{other.pk}/import/", {"file": upload})

    copy = other.examples.get()
    assert (copy.question, copy.checks) == (example.question, example.checks)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.csv", b"answer\n1", "needs a column named"),
        ("a.csv", b"\xff\xfe\x00", "UTF-8"),
        ("a.jsonl", b"", "no rows"),
        ("a.jsonl", b"{}\n" * 501, "up to 500"),
    ],
)
def test_an_unreadable_file_is_refused_with_a_reason(
    admin_client, example_set, name, data, reason
):
    upload = SimpleUploadedFile(name, data or b"\n")

    answer = admin_client.post(f"{SETS}{example_set.pk}/import/", {"file": upload})

    assert reason in answer.text


def test_examples_are_moved_to_another_set(admin_client, example):
    other = ExampleSet.objects.create(name="Other")
    form = {"action": f"move_{other.pk}", "_selected_action": example.pk, "index": 0}

    admin_client.post("/admin/review/example/", form)

    example.refresh_from_db()
    assert example.example_set == other


async def test_a_set_is_run_from_its_page(admin_async_client, scripted, example):
    scripted(SUM, Says(answer="It is 42."))
    agent = await Agent.objects.aget(is_default=True)
    form = {"agent_name": agent.pk, "target": "published", "mode": "recorded", "deadline": 60}

    answer = await admin_async_client.post(f"{SETS}{example.example_set.pk}/run/", form)

    experiment = await finish(await Experiment.objects.aget())
    assert (
        answer.headers["Location"] == f"/admin/experiments/experiment/{experiment.pk}/change/"
    )
    page = await admin_async_client.get(answer.headers["Location"])
    assert "100%" in page.text
    assert "The sum" in page.text
    overview = await admin_async_client.get(f"{SETS}{example.example_set.pk}/")
    assert "<polyline" in overview.text


async def test_a_live_run_with_writing_tools_asks_first(admin_async_client, example):
    await ToolRegistration.objects.filter(name="calculator").aupdate(effect="at_most_once")
    agent = await Agent.objects.aget(is_default=True)
    form = {"agent_name": agent.pk, "target": "published", "mode": "live", "deadline": 60}

    answer = await admin_async_client.post(f"{SETS}{example.example_set.pk}/run/", form)

    assert "tools with side effects: calculator" in answer.text
    assert not await Experiment.objects.aexists()


async def test_two_experiments_are_compared(admin_async_client, scripted, example):
    scripted(SUM, Says(answer="It is 41, or so they say to everyone here."))
    first = await run_set(example.example_set)
    scripted(SUM, Says(answer="It is 42."))
    second = await run_set(example.example_set)
    path = f"/admin/experiments/experiment/{second.pk}/change/"

    page = await admin_async_client.get(path, {"against": first.pk})

    assert "1 better, 0 worse" in page.text
    assert "▲ +" in page.text


async def test_a_running_experiment_shows_progress_and_can_be_canceled(
    admin_async_client, administrator, example
):
    agent = await Agent.objects.aget(is_default=True)
    running = await Experiment.objects.acreate(
        kind="examples", agent=agent, target="published", started_by=administrator
    )
    await running.results.acreate(number=1, name="Waits", example=example)
    path = f"/admin/experiments/experiment/{running.pk}/"

    page = await admin_async_client.get(f"{path}change/")
    assert "0 of 1 finished" in page.text
    await admin_async_client.post(f"{path}cancel/")

    await running.arefresh_from_db()
    assert running.state == Experiment.State.CANCELLED


async def test_a_backtest_is_estimated_started_and_links_to_the_comparison(
    admin_async_client, scripted, person
):
    scripted(SUM, Says(answer="It is 42."))
    origin = await run_question("6 * 7?", user=person)
    agent = await Agent.objects.aget(is_default=True)
    path = f"/admin/experiments/experiment/backtest/{agent.pk}/"
    before = await admin_async_client.get(path)
    assert "1 question, about 2 model calls" in before.text
    scripted(Says.call("calculator", expression="7 * 6"))

    answer = await admin_async_client.post(path, {"source": "runs-5"})

    experiment = await finish(await Experiment.objects.aget())
    page = await admin_async_client.get(answer.headers["Location"])
    assert experiment.kind == Experiment.Kind.BACKTEST
    assert "Called calculator: 7 * 6 instead of calculator: 6 * 7" in page.text
    run = await Run.objects.exclude(pk=origin.pk).aget()
    assert f"/traces/{origin.pk}/compare/{run.pk}/" in page.text


async def test_experiment_runs_are_left_out_of_the_trace_list(
    admin_async_client, scripted, example, administrator
):
    scripted(SUM, Says(answer="It is 42."))
    await run_set(example.example_set, administrator)

    plain = await admin_async_client.get("/traces/")
    asked = await admin_async_client.get("/traces/", {"q": "has:experiment"})

    assert ("What is 6 * 7?" in plain.text, "What is 6 * 7?" in asked.text) == (False, True)


async def test_anothers_question_is_masked_in_results(scripted, person, tester):
    scripted(Says(answer="Mail ada@example.com."), Says(answer="Mail bob@example.com."))
    await run_question("Who is ada@example.com?", user=person)
    agent = await Agent.objects.aget(is_default=True)
    client = await as_async_user(tester)

    answer = await client.post(
        f"/admin/experiments/experiment/backtest/{agent.pk}/", {"source": "runs-5"}
    )

    await finish(await Experiment.objects.aget())
    page = await client.get(answer.headers["Location"])
    assert page.status_code == 200
    assert "@example.com" not in page.text
    run = await Run.objects.alatest("pk")
    trace = await client.get(f"/traces/{run.pk}/")
    assert "@example.com" not in trace.text


def test_without_permission_nothing_is_run_or_back_tested(example, django_user_model):
    clerk = django_user_model.objects.create_user("clerk", is_staff=True)
    client = as_user(clerk)
    agent = Agent.objects.get(is_default=True)
    paths = [
        f"{SETS}{example.example_set.pk}/",
        f"{SETS}{example.example_set.pk}/run/",
        f"{SETS}{example.example_set.pk}/import/",
        f"{SETS}{example.example_set.pk}/export.csv",
        f"/admin/experiments/experiment/backtest/{agent.pk}/",
    ]

    assert [client.get(path).status_code for path in paths] == [403] * 5


async def test_the_draft_of_the_editor_is_back_tested_before_it_is_published(
    admin_async_client, scripted, person, administrator
):
    scripted(Says(answer="It is 42."))
    await run_question("6 * 7?", user=person)
    agent = await Agent.objects.aget(is_default=True)
    changes = {"instructions": ["Answer like a pirate."]}
    await sync_to_async(drafts.save)(agent, None, administrator, changes)
    model = scripted(Says(answer="Aye, 42."))
    path = f"/admin/experiments/experiment/backtest/{agent.pk}/"

    await admin_async_client.post(path, {"source": "runs-5", "target": "draft"})

    experiment = await finish(await Experiment.objects.aget())
    assert (experiment.target, experiment.version) == ("draft", None)
    assert "Answer like a pirate." in str(model.requests[0]["messages"][0])
    assert "pirate" not in (await Agent.objects.aget(pk=agent.pk)).instructions


async def test_a_draft_with_errors_is_refused_in_words(admin_async_client, administrator):
    agent = await Agent.objects.aget(is_default=True)
    await sync_to_async(drafts.save)(agent, None, administrator, {"max_steps": ["many"]})

    page = await admin_async_client.get(
        f"/admin/experiments/experiment/backtest/{agent.pk}/", {"target": "draft"}
    )

    assert "The draft has errors. Fix them first. Max steps:" in page.text


async def test_a_run_is_saved_into_the_chosen_set(
    admin_async_client, scripted, person, example_set
):
    scripted(SUM, Says(answer="It is 42."))
    run = await run_question("6 * 7?", user=person)
    page = await admin_async_client.get(f"/traces/{run.pk}/")
    assert f'<option value="{example_set.pk}">Sums</option>' in page.text

    await admin_async_client.post(
        f"/traces/{run.pk}/example/", {"name": "It", "set": example_set.pk}
    )

    saved = await Example.objects.aget()
    assert (saved.example_set_id, len(saved.observations)) == (example_set.pk, 1)


def test_a_deleted_set_is_brought_back_with_its_examples(admin_client, example):
    pk = example.example_set.pk
    said = admin_client.post(f"{SETS}{pk}/delete/", {"post": "yes"}, follow=True).text
    assert not Example.objects.exists()
    undo = re.search(r'action="(/admin/[^"]*restore[^"]*)"', said).group(1)

    admin_client.post(undo)

    assert ExampleSet.objects.get(pk=pk).examples.get().name == "The sum"
