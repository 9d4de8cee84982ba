"""The trace list: pages, neighbors, charts and saved views."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.engine.testing import Says
from agents.models import Agent, AgentStep, ReviewScope, Run, RunEvent
from agents.review.filters.filter_language import parse
from agents.review.models import Label, Rating, Review, SavedView
from agents.review.run_list import columns, listing
from agents.review.run_list.charts import build_charts, p95
from agents.review.run_list.listing import RunMatch, neighbours
from agents.review.samples import sample_runs
from agents.runs.projection import Projection
from tests.conftest import run_question, select
from tests.sampling import one_in

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def mine(person_client):
    return person_client


def make(user, count, **columns):
    columns = {"agent_name": "helper", "status": "completed", "query": "Why?"} | columns
    rows = [Run(user=user, topic=str(number), **columns) for number in range(count)]
    return [run.pk for run in Run.objects.bulk_create(rows)]


def get(client, q="", **more):
    return client.get(f"/traces/?{urlencode({'q': q, **more})}").text


def numbers(page):
    return [int(pk) for pk in re.findall(r'<tr data-run="(\d+)"', page)]


def links(page, rel):
    return [a.replace("&amp;", "&") for a in re.findall(rf'rel="{rel}" href="([^"]+)"', page)]


def follow_pages(client, page, rel):
    """Return every page, following the links."""
    pages = [numbers(page)]
    while found := links(page, rel):
        page = client.get(found[0]).text
        pages.append(numbers(page))
    return pages, page


def test_paging_shows_every_run_once_in_both_directions(mine, person):
    pks = make(person, 120)[::-1]
    pages = [pks[:50], pks[50:100], pks[100:]]

    there, last = follow_pages(mine, get(mine), "next")
    back, _ = follow_pages(mine, last, "prev")

    assert there == pages
    assert back == pages[::-1]


def test_imported_answers_are_listed_and_exported_only_if_asked_for(mine, person):
    runs = make(person, 1)
    imported = make(person, 3, route=Run.IMPORTED)

    assert numbers(get(mine)) == runs
    assert numbers(get(mine, "source:here")) == runs
    assert numbers(get(mine, "source:imported")) == imported[::-1]
    assert list(listing.RunSearch(person, parse("", is_reviewer=False)).chunks(9)) == [runs]


@pytest.mark.parametrize("names", ["", ",".join(columns.COLUMNS)], ids=["default", "all"])
def test_every_cell_is_in_the_column_of_its_heading(mine, person, names):
    make(person, 1)
    page = get(mine, columns=names)

    headings = re.findall(r'<th scope="col" data-column="(\w+)"', page)
    cells = re.findall(r'<td data-column="(\w+)"', page)

    assert headings == cells
    assert len(headings) == page.count("<th ") == page.count("<td ") > 0


def test_pages_keep_the_filter(mine, person):
    make(person, 60, status="failed")
    completed = make(person, 60)
    make(person, 60, status="failed")

    there, last = follow_pages(mine, get(mine, "status:completed"), "next")

    assert sum(there, []) == completed[::-1]
    assert 'value="status:completed"' in last


def test_new_runs_do_not_shift_the_next_page(mine, person):
    pks = make(person, 70)
    following = links(get(mine), "next")[0]

    make(person, 30)

    assert numbers(mine.get(following).text) == pks[:20][::-1]


def test_a_link_to_a_run_keeps_the_filter(mine, person):
    (pk,) = make(person, 1, status="failed")

    page = get(mine, "status:failed why")

    assert f'href="/traces/{pk}/?within=status%3Afailed+why"' in page
    assert f'href="/traces/{pk}/"' in get(mine)


def test_the_neighbours_of_a_run_are_within_the_filter(person, stranger):
    failed = make(person, 3, status="failed")
    make(person, 1)
    make(stranger, 1, status="failed")

    assert neighbours(person, "status:failed", failed[1]) == (failed[2], failed[0])
    assert neighbours(person, "status:failed", failed[2]) == (None, failed[1])
    assert neighbours(person, "", failed[0]) == (failed[1], None)


@pytest.mark.parametrize("cursor", one_in(3, ["x", "-1", "9" * 30, "٣", "", "0"]))
@pytest.mark.parametrize("way", ["older", "newer"])
def test_an_invalid_cursor_is_ignored(mine, person, way, cursor):
    make(person, 1)

    assert "Search older runs" not in get(mine, "status:failed", **{way: cursor})


@pytest.mark.parametrize(
    "q", one_in(4, ["\0", "a\0b", "\ud800", "status:\0", '"', "-", "%00", "＂"])
)
def test_any_query_returns_a_page(mine, q):
    text = urlencode({"q": q}, errors="surrogatepass")

    assert mine.get(f"/traces/?{text}").status_code == 200


def test_the_list_shows_how_many_runs_were_counted(mine, person, monkeypatch):
    make(person, 60)
    assert "50 of 60" in get(mine)

    monkeypatch.setattr(listing, "MAX_MATCHES", 55)

    assert "50 of more than 55" in get(mine)


def test_a_search_through_all_runs_stops_and_can_continue(
    client, person, reviewer, monkeypatch
):
    wanted = make(person, 1, status="failed")
    make(person, 30)
    client.force_login(reviewer)
    monkeypatch.setattr(listing, "SCAN_DISTANCES", (5, 20))

    page = get(client, "status:failed")
    assert numbers(page) == []
    assert "among the most recent runs" in page

    there, last = follow_pages(client, page, "next")
    assert sum(there, []) == wanted
    assert "Search older runs" not in last


def test_a_search_in_batches_finds_every_run_once(client, person, reviewer, monkeypatch):
    failed = make(person, 40, status="failed")
    make(person, 40)
    failed += make(person, 40, status="failed")
    client.force_login(reviewer)
    monkeypatch.setattr(listing, "SCAN_DISTANCES", (7, 30, 1_000))

    page = get(client, "status:failed")

    assert "50 of 80" in page
    assert sum(follow_pages(client, page, "next")[0], []) == failed[::-1]


def test_a_misspelt_field_has_an_error_next_to_the_results(mine, person):
    failed = make(person, 1, status="failed")
    make(person, 1)

    page = get(mine, "staus:x status:failed")

    assert "“staus”" in page
    assert "q=status%3Ax+status%3Afailed" in page
    assert numbers(page) == failed


def test_an_empty_list_suggests_corrections(mine, person):
    make(person, 1, agent_name="reporter")

    page = get(mine, "agent:reportr")

    assert "No matching runs." in page
    assert "“reportr”" in page
    assert 'href="/traces/?q=agent%3Areporter"' in page


def test_each_term_can_be_removed(mine):
    page = get(mine, "status:failed -agent:helper")

    assert 'href="/traces/?q=-agent%3Ahelper"' in page
    assert 'href="/traces/?q=status%3Afailed"' in page


def test_a_row_shows_its_numbers_and_feedback(mine, person):
    cost = {"cost": 0.25, "prompt_tokens": 4_000, "completion_tokens": 321, "tool_calls": 3}
    (pk,) = make(person, 1, model="openai/gpt-5", turns=7, **cost)
    Rating.objects.create(run_id=pk, user=person, is_good=False)
    Review.objects.create(run_id=pk)

    columns = "question,model,steps,tools,tokens,cost,rating"
    shown = mine.get("/traces/", {"columns": columns})
    cells = {
        cell.attributes["data-column"]: cell.text(strip=True)
        for cell in select(shown, "tbody td")
    }

    assert cells.pop("question").endswith("flagged for review")
    assert cells == {
        "select": "",
        "model": "openai/gpt-5",
        "steps": "7",
        "tools": "3",
        "tokens": "4,321",
        "cost": "$0.2500",
        "rating": "thumbs down",
    }


def test_a_planned_run_counts_the_steps_of_its_plan(mine, person):
    make(person, 1, turns=1, tasks=25)

    page = mine.get("/traces/", {"columns": "question,steps"})
    [steps] = select(page, 'td[data-column="steps"]')
    assert steps.text(strip=True) + steps.attributes["data-unit"] == "25 turns"


def test_a_reviewed_run_is_no_longer_in_the_queue(mine, person):
    (pk,) = make(person, 1)
    Review.objects.create(run_id=pk, verdict=Review.Verdict.CORRECT)

    assert numbers(get(mine)) == [pk]
    assert "flag-mark" not in get(mine)


def test_reviewers_see_who_asked(client, person, reviewer):
    make(person, 1)
    client.force_login(person)
    assert 'data-column="user"' not in get(client)

    client.force_login(reviewer)

    assert 'data-column="user" class="name">ada<' in get(client)
    assert len(numbers(get(client, "user:ada"))) == 1


def test_a_reviewer_of_some_agents_finds_no_others(client, person, reviewer):
    helper = Agent.objects.create(name="helper")
    seen = make(person, 1, agent=helper)
    hidden = make(person, 1, query="Secret?")
    ReviewScope.objects.create(user=reviewer).agents.add(helper)
    client.force_login(reviewer)

    assert numbers(get(client)) == seen
    assert numbers(get(client, "secret")) == []
    assert neighbours(reviewer, "", seen[0]) == (None, None)
    assert hidden


def test_typing_reloads_only_the_list(mine, person):
    make(person, 1)

    part = mine.get("/traces/?q=why", headers={"HX-Request": "true"})

    assert '<div id="found"' in part.text
    assert '<p id="counted" hx-swap-oob="innerHTML">1 of 1</p>' in part.text
    assert "<html" not in part.text
    assert "HX-Request" in part.headers["Vary"]


def test_a_view_is_saved_changed_and_deleted(mine, person):
    mine.post("/traces/views/", {"name": "Mine", "q": "status:failed"})
    mine.post("/traces/views/", {"name": "Mine", "q": "cost:>1"})

    saved = SavedView.objects.get(user=person)
    assert (saved.name, saved.query) == ("Mine", "cost:>1")
    assert "Delete view Mine" in get(mine)

    answer = mine.post(f"/traces/views/{saved.pk}/delete/", {"q": "cost:>1"})
    assert answer.headers["Location"] == "/traces/?q=cost%3A%3E1"
    assert not SavedView.objects.exists()


def test_a_view_is_deleted_by_a_form_of_its_own(mine, person):
    saved = SavedView.objects.create(user=person, name="Assigned to me", query="cost:>1")

    shown = mine.get("/traces/", {"q": "status:failed"})

    inputs = {
        field.attributes["name"]: field.attributes["value"]
        for field in select(shown, 'form#forget[method="post"] input')
    }
    assert inputs.pop("csrfmiddlewaretoken")
    assert inputs == {"q": "status:failed"}
    [button] = select(shown, f'[formaction="/traces/views/{saved.pk}/delete/"]')
    assert button.attributes["form"] == "forget"


def test_a_view_without_a_name_is_called_by_its_filter(mine):
    mine.post("/traces/views/", {"name": " \0", "q": "status:failed"})

    assert SavedView.objects.get().name == "status:failed"


def test_other_users_views_cannot_be_seen_or_deleted(mine, stranger):
    theirs = SavedView.objects.create(user=stranger, name="Theirs", query="status:failed")

    assert "Theirs" not in get(mine)
    assert mine.post(f"/traces/views/{theirs.pk}/delete/").status_code == 404
    assert SavedView.objects.exists()


def test_the_number_of_saved_views_is_limited(mine, person):
    SavedView.objects.bulk_create(SavedView(user=person, name=str(n)) for n in range(50))

    page = mine.post("/traces/views/", {"name": "more", "q": "x"}, follow=True)

    assert "reached the limit for saved views." in page.text
    assert SavedView.objects.count() == 50


def test_suggestions_complete_the_filter(person_client, person, reviewer):
    (pk,) = make(person, 1, model="openai/gpt-5", step_types="|tool|tool=database|")
    Label.objects.create(run_id=pk, name="wrong figure")

    fields = {f["name"]: f for f in person_client.get("/traces/completions/").json()["fields"]}

    def offered(name):
        return [each["value"] for each in fields[name]["values"]]

    assert "failed" in offered("status")
    assert offered("model") == ["openai/gpt-5"]
    assert offered("tool") == ["database"]
    assert {"note", "label"}.isdisjoint(offered("has"))
    assert {"label", "user"}.isdisjoint(fields)


def test_labels_are_offered_to_reviewers(client, person, reviewer):
    Label.objects.create(run_id=make(person, 1)[0], name="wrong figure")
    client.force_login(reviewer)

    fields = client.get("/traces/completions/").json()["fields"]

    offered = next(field["values"] for field in fields if field["name"] == "label")
    assert [each["value"] for each in offered] == ["wrong figure"]


def test_suggestions_name_no_tools_with_personal_data(client, person, reviewer):
    make(person, 1, step_types="|tool|tool=database|tool=mail_taro@example.com|")
    client.force_login(reviewer)

    page = client.get("/traces/completions/").content

    assert b"database" in page
    assert b"taro" not in page


def test_suggestions_contain_nothing_of_other_users(client, person, stranger):
    (pk,) = make(
        person, 1, model="secret-model", agent_name="secret", step_types="|tool=secret|"
    )
    Label.objects.create(run_id=pk, name="secret label")
    client.force_login(stranger)

    assert b"secret" not in client.get("/traces/completions/").content


def test_the_charts_have_text_alternatives(mine, person):
    make(person, 3, seconds=2.0)
    make(person, 1, status="failed", seconds=40.0)

    page = get(mine)

    assert page.count('role="img"') == 3
    assert re.search(r'aria-label="Failed since [^"]+: 1\. Peak around', page)
    assert re.search(r'aria-label="p95 active time since [^"]+: 40.0 s', page)


def test_the_charts_count_runs_in_the_right_bucket():
    now = timezone.now()
    days = [now - timedelta(days=n) for n in (0, 0, 1, 30)]
    found = [RunMatch(pk, day, "completed", 1.0) for pk, day in enumerate(days)]

    volume, failures, slow = build_charts(found)

    assert volume.amount == "4"
    assert [bar.height for bar in volume.bars] == ["16.00", "16.00", "32.00"]
    assert failures.bars == []
    assert slow.amount == "1.00 s"


def test_the_95th_percentile_is_computed():
    now = timezone.now()

    assert p95([RunMatch(n, now, "completed", float(n)) for n in range(100)]) == 94.0
    assert p95([RunMatch(1, now, "running", None)]) == 0.0


def test_the_list_has_a_constant_number_of_queries(mine, person, django_assert_max_num_queries):
    make(person, 60)
    get(mine)

    with django_assert_max_num_queries(20):
        page = get(mine, "status:completed -tool:database -rating:up why")

    assert len(numbers(page)) == 50


def test_nested_reruns_need_no_extra_queries(mine, person, django_assert_max_num_queries):
    run = Run.objects.create(user=person, topic="a", query="?", agent_name="helper")
    for number in range(30):
        about = {"user": person, "topic": f"r{number}", "query": "?", "agent_name": "helper"}
        again = Run.objects.create(origin=run, origin_step=1, **about)
        run = again if number == 0 else run
    get(mine)

    with django_assert_max_num_queries(21):
        page = get(mine)

    assert len(numbers(page)) == 31


@pytest.mark.usefixtures("agent", "run_executor")
async def test_a_finished_run_is_found_by_its_tools(scripted, person):
    scripted(Says.call("calculator", expression="6*7"), Says(answer="42"))

    run = await run_question("6 * 7", user=person)

    assert run.step_types == "|answer|thought|tool|tool=calculator|"
    found = parse("tool:calculator -has:error", is_reviewer=False).apply(Run.objects.all())
    assert [row.pk async for row in found] == [run.pk]


def test_search_tags_contain_kinds_tools_and_failures(person):
    now = timezone.now()
    first, second = make(person, 2, ended_at=now)
    step = {"run_id": first, "status": "failed", "started_at": now, "turn": 1}
    AgentStep.objects.create(number=1, kind="tool", action="Shop|Orders", **step)
    AgentStep.objects.create(number=2, kind="thought", **step)

    assert Projection().step_types(first) == "|failed|thought|tool|tool=shop orders|"
    assert Projection().step_types(second) == "||"


@pytest.mark.parametrize("stories", [200, pytest.param(1_000, marks=pytest.mark.thorough)])
def test_seeded_runs_have_events_and_many_kinds(stories, monkeypatch):
    monkeypatch.setattr(sample_runs, "STORY_COUNT", stories)
    call_command("seed_runs", runs=stories + 300, events=10 * (stories + 300), verbosity=0)

    assert Run.objects.count() == stories + 300
    assert 8 < RunEvent.objects.count() / Run.objects.count() < 13
    assert Run.objects.filter(seconds=None).count() == 0
    assert set(Run.objects.values_list("status", flat=True)) >= {
        "completed",
        "failed",
        "blocked",
    }
    times = list(Run.objects.order_by("pk").values_list("started_at", flat=True))
    assert times == sorted(times)
    last = Run.objects.latest("pk")
    assert last.events.count() == last.events.latest("seq").seq
    assert last.steps.first().started_at >= last.started_at
    assert not AgentStep.objects.filter(ended_at=None).exists()
    assert Rating.objects.exists()
    assert Run.objects.create(topic="next", query="?").pk == last.pk + 1


@pytest.mark.thorough
def test_more_runs_can_be_seeded_later():
    call_command("seed_runs", runs=60, events=600, verbosity=0)
    call_command("seed_runs", runs=60, events=600, verbosity=0)

    assert Run.objects.count() == 120
    assert Rating.objects.count() == 6


def test_seeding_is_rejected_when_there_are_real_runs(person):
    make(person, 1)

    with pytest.raises(CommandError, match="has real runs"):
        call_command("seed_runs", runs=5, events=50)

    assert Run.objects.count() == 1


def test_a_view_that_cannot_be_saved_has_an_error_message(mine, unwritable):
    unwritable()

    answer = mine.post("/traces/views/", {"q": "status:failed", "name": "x"}, follow=True)

    assert answer.status_code == 200
    assert "saved" in answer.text
