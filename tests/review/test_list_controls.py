"""The trace list: order, columns, menus beside the filter, and actions on several runs."""

import csv
import io
import json
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from agents.models import Agent, AuditEntry, Run
from agents.review.filters import filter_controls
from agents.review.filters.filter_language import parse
from agents.review.models import Example, Label, Review, SavedView
from agents.review.run_list import bulk, listing
from agents.review.run_list import columns as all_columns
from agents.review.run_list.bulk import Selection
from agents.review.run_list.listing import neighbours
from agents.web.downloads import csv_line
from tests.conftest import as_user, select
from tests.review.conftest import MAIL

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine(person_client):
    return person_client


def make(user, **columns):
    columns = {"agent_name": "helper", "status": "completed", "query": "Why?"} | columns
    columns = {"topic": f"t{Run.objects.count()}"} | columns
    return Run.objects.create(user=user, **columns).pk


def get(client, **query):
    return client.get(f"/traces/?{urlencode(query)}").text


def numbers(page):
    return [int(pk) for pk in re.findall(r'<tr data-run="(\d+)"', page)]


def export(user, form, q="", run=(), columns=""):
    """Return the file without the download, which needs the database thread."""
    run_filter = parse(q, is_reviewer=listing.is_reviewer(user))
    selection = Selection(user=user, run_filter=run_filter, pks=run)
    chosen = all_columns.parse(columns.split(","), {all_columns.PEOPLE})
    return "".join(bulk.export(selection, chosen, form))


def test_the_list_is_sorted_by_a_column_with_empty_values_last(mine, person):
    cheap, free, dear = (make(person, cost=cost) for cost in (0.1, None, 0.9))

    assert numbers(get(mine, sort="-cost")) == [dear, cheap, free]
    assert numbers(get(mine, sort="cost")) == [cheap, dear, free]
    assert numbers(get(mine)) == [dear, free, cheap]
    page = get(mine, sort="-cost")
    assert 'aria-sort="descending"' in page.split('data-column="cost"')[1].split(">")[0]
    assert "sort=cost" in page.split('data-column="cost"')[1].split("</th>")[0]


@pytest.mark.parametrize("sort", ["question", "-rating", "nonsense", "", "user"])
def test_a_column_that_cannot_be_sorted_leaves_the_newest_first(mine, person, sort):
    first, second = make(person), make(person)

    assert numbers(get(mine, sort=sort)) == [second, first]


def test_a_sorted_list_has_pages_and_keeps_its_order_through_them(mine, person, monkeypatch):
    monkeypatch.setattr(listing, "PAGE_SIZE", 2)
    pks = [make(person, tool_calls=calls) for calls in (5, 3, 9, 1, 7)]

    first, last = get(mine, sort="tools"), get(mine, sort="tools", page=3)

    assert numbers(first) == [pks[3], pks[1]]
    assert "page=2" in first
    assert numbers(last) == [pks[2]]
    assert numbers(get(mine, sort="tools", page=99)) == [pks[2]]


def test_the_list_says_which_runs_are_not_sorted(mine, person, monkeypatch):
    monkeypatch.setattr(listing, "MAX_MATCHES", 2)
    oldest = make(person, cost=9)
    make(person, cost=1), make(person, cost=2)

    page = get(mine, sort="-cost")

    assert oldest not in numbers(page)
    assert "among the 2 most recent matches" in page
    assert "most recent matches" not in get(mine)


def test_the_neighbours_of_a_run_are_those_of_the_sorted_list(mine, person):
    low, high, middle = (make(person, cost=cost) for cost in (1, 9, 5))

    page = mine.get(f"/traces/{middle}/?sort=-cost").text

    assert f'rel="prev" data-key="[" href="/traces/{high}/?sort=-cost"' in page
    assert f'rel="next" data-key="]" href="/traces/{low}/?sort=-cost"' in page
    assert neighbours(person, "", middle) == (None, high)


def test_columns_are_chosen_and_remembered(mine, person):
    make(person, model="openai/gpt-5")
    chosen = {"column": ["model", "id", "nonsense"], "q": "status:completed"}

    answer = mine.post("/traces/columns/", chosen)

    assert answer.url == "/traces/?q=status%3Acompleted"
    page = get(mine)
    head = re.findall(r'<th scope="col" data-column="(\w+)"', page)
    assert head == ["select", "id", "question", "model"]
    mine.post("/traces/columns/", {"reset": "1"})
    assert not SavedView.objects.exists()
    assert 'data-column="status"' in get(mine)


def test_a_saved_view_has_its_columns_order_and_grouping(mine, person):
    make(person)
    about = {"q": "status:completed", "sort": "-cost", "columns": "question,cost", "name": "A"}
    mine.post("/traces/views/", about | {"group": "chat"})

    [link] = select(mine.get("/traces/"), ".saved a")

    saved = SavedView.objects.get(name="A")
    assert (saved.sort, saved.columns) == ("-cost", "question,cost")
    assert parse_qs(urlsplit(link.attributes["href"]).query) == {
        "q": ["status:completed"],
        "sort": ["-cost"],
        "columns": ["question,cost"],
        "group": ["chat"],
    }
    assert 'aria-current="true">A</a>' in mine.get(link.attributes["href"]).text


def urls(menu):
    return {option.label: option.url for option in menu.options}


def test_the_menus_write_the_filter_language_and_read_it():
    asked = parse('why status:failed after:-7d -agent:"my agent"', is_reviewer=False)

    dates = filter_controls.date_menu(asked, str)
    statuses = filter_controls.status_menu(asked, str)

    assert (dates.label, dates.is_used) == ("Last 7 days", True)
    assert urls(dates)["Last hour"] == 'why status:failed -agent:"my agent" after:-1h'
    assert urls(dates)["Any time"] == 'why status:failed -agent:"my agent"'
    assert [option.label for option in statuses.options if option.is_on] == ["failed"]
    assert urls(statuses)["failed"] == 'why after:-7d -agent:"my agent"'
    assert urls(statuses)["stopped"].endswith("status:failed,stopped")


def test_an_agent_with_a_space_in_its_name_is_quoted():
    Agent.objects.create(name="my agent")
    asked = parse("", is_reviewer=False)

    assert urls(filter_controls.agent_menu(asked, str))["my agent"] == 'agent:"my agent"'
    asked = parse('agent:"my agent"', is_reviewer=False)
    assert urls(filter_controls.agent_menu(asked, str))["my agent"] == ""


@pytest.mark.parametrize(
    ("first", "last", "term"),
    [
        ("2026-11-01", "2026-11-05", "on:2026-11-01..2026-11-05"),
        ("2026-11-05", "2026-11-01", "on:2026-11-01..2026-11-05"),
        ("2026-11-01", "", "after:2026-11-01"),
        ("", "2026-11-05", "before:2026-11-06"),
    ],
)
def test_a_custom_range_becomes_a_term(mine, first, last, term):
    answer = mine.get("/traces/", {"q": "after:-7d why", "from": first, "to": last})

    assert parse_qs(urlsplit(answer.url).query)["q"] == [f"why {term}"]


@pytest.mark.parametrize("day", ["x", "2026-13-01", "0000-00-00"])
def test_an_invalid_date_is_ignored(mine, day):
    assert mine.get("/traces/", {"from": day, "to": day}).status_code == 200


def test_the_selected_runs_are_exported_with_the_visible_columns(person):
    first, _left, last = (make(person, query=f"={n}+1", cost=n) for n in range(3))

    text = export(person, "csv", run=[first, last], columns="id,question,cost")

    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["id", "question", "cost"]
    assert rows[1:] == [[str(last), "'=2+1", "2.0"], [str(first), "'=0+1", "0.0"]]


def test_a_cell_of_text_is_never_a_formula_and_numbers_stay_numbers():
    cells = ["=1", " =1", "\u3000＠x", "\n+1", "\tx", "a=1", -1, 0.5, None]

    (row,) = csv.reader(io.StringIO(csv_line(cells)))

    assert row == ["'=1", "' =1", "'\u3000＠x", "'\n+1", "'\tx", "a=1", "-1", "0.5", ""]


def test_without_a_selection_all_matching_runs_are_exported(person, monkeypatch):
    monkeypatch.setattr("agents.review.run_list.bulk.CHUNK", 2)
    pks = [make(person) for _ in range(5)]
    make(person, status="failed")

    text = export(person, "jsonl", q="status:completed", columns="status")

    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["run"] for row in rows] == pks[::-1]
    assert {row["status"] for row in rows} == {"completed"}


def test_an_export_has_no_runs_of_other_users(person, stranger):
    theirs = make(stranger, query="secret plan")

    assert "secret" not in export(person, "csv", run=[theirs])
    assert "secret" not in export(person, "jsonl")


def test_an_export_of_other_users_runs_is_masked(personal_run, reviewer):
    text = export(reviewer, "jsonl", columns="id,question")
    found = export(reviewer, "jsonl", q=f'"{MAIL}"')

    assert str(personal_run.pk) in text
    assert MAIL not in text
    assert found == ""  # masked words can't be searched for


@pytest.mark.django_db(transaction=True)
async def test_a_reviewer_downloads_a_file_and_it_is_recorded(
    personal_run, reviewer, async_client
):
    await async_client.aforce_login(reviewer)

    answer = await async_client.post("/traces/export/csv/", {"columns": "id,question"})

    text = b"".join([piece async for piece in answer.streaming_content]).decode()
    assert answer["Content-Disposition"] == 'attachment; filename="runs.csv"'
    assert text.splitlines()[0] == "id,question"
    assert text.splitlines()[1].startswith(f"{personal_run.pk},")
    entry = await AuditEntry.objects.aget(action="run.list_exported")
    assert entry.detail == {"form": "csv", "selected": "all"}


@pytest.mark.django_db(transaction=True)
async def test_an_unknown_format_is_not_found(person, async_client):
    await async_client.aforce_login(person)

    assert (await async_client.post("/traces/export/exe/")).status_code == 404


def test_two_selected_runs_are_compared_and_no_other_number(mine, person, stranger):
    one, other, theirs = make(person), make(person), make(stranger)
    act = {"action": "compare"}

    assert mine.post("/traces/selected/", act | {"run": [other, one]}).url == (
        f"/traces/{one}/compare/{other}/"
    )
    assert mine.post("/traces/selected/", act | {"run": [one, theirs]}).url == "/traces/"
    page = mine.post("/traces/selected/", act | {"run": [one]}, follow=True)
    assert "Select exactly two runs" in page.text
    assert "Select at least one run" in mine.post("/traces/selected/", act, follow=True).text


def test_all_matching_runs_are_flagged_once(mine, person, stranger):
    first, second, theirs = make(person), make(person), make(stranger)
    Review.objects.create(run_id=first)

    page = mine.post("/traces/selected/", {"action": "flag", "all": "1"}, follow=True)

    flagged = set(Review.objects.values_list("run_id", flat=True))
    assert flagged == {first, second}
    assert theirs not in flagged
    text = page.text
    assert "1 run flagged for review." in text
    assert "1 run skipped: already in the review queue" in text


def test_selected_runs_become_examples_named_after_their_question(reviewer, person):
    agent = Agent.objects.create(name="helper")
    pks = [make(person, query="What is 1 + 1?", answer="2", agent=agent) for _ in range(2)]
    kept = make(person, agent=agent, query=f"Who is {MAIL}?", answer=f"{MAIL} is Ada.")
    client, act = as_user(reviewer), {"action": "example", "run": [*pks, kept]}

    page = client.post("/traces/selected/", act, follow=True).text

    saved = {example.run_id: example for example in Example.objects.all()}
    assert "3 runs saved as examples." in page
    assert saved[pks[0]].name == "What is 1 + 1?"
    assert saved[pks[1]].name == f"What is 1 + 1? #{pks[1]}"
    assert MAIL not in saved[kept].name
    assert saved[kept].expected == ""  # the reviewer never saw it
    again = client.post("/traces/selected/", act, follow=True).text
    assert "already saved as an example" in again


def test_only_reviewers_save_examples(mine, person):
    run = make(person, agent=Agent.objects.create(name="helper"))

    page = mine.post("/traces/selected/", {"action": "example", "run": [run]}, follow=True)

    assert not Example.objects.exists()
    assert "only reviewers can save examples" in page.text


@pytest.mark.parametrize(
    ("q", "label", "first", "last"),
    [
        ("on:2026-09-01..2026-09-03", "Sep 1, 2026 – Sep 3, 2026", "2026-09-01", "2026-09-03"),
        ("on:2026-09-01", "Sep 1, 2026", "2026-09-01", "2026-09-01"),
        ("after:2026-09-01", "Since Sep 1, 2026", "2026-09-01", ""),
        ("before:2026-09-04", "Until Sep 3, 2026", "", "2026-09-03"),
        ("after:-12h", "after:-12h", "", ""),
    ],
)
def test_a_range_of_days_is_in_words_and_can_be_edited(q, label, first, last):
    menu = filter_controls.date_menu(parse(q, is_reviewer=False), str)

    assert (menu.label, menu.first, menu.last) == (label, first, last)


def test_an_action_comes_back_to_its_page_of_the_list(mine, person):
    newest = [make(person) for _ in range(3)][-1]
    sent = {"action": "flag", "run": newest, "q": "status:completed", "older": newest}

    answer = mine.post("/traces/selected/", sent)

    assert answer["Location"] == f"/traces/?q=status%3Acompleted&older={newest}"


def test_a_table_names_its_runs_and_rounds_figures(person):
    pk = make(person, cost=0.1 + 0.2)

    assert export(person, "csv", columns="question,cost").splitlines()[1].endswith(",0.3")
    assert export(person, "csv", columns="question").startswith("run,question")
    assert export(person, "csv", columns="question").splitlines()[1].startswith(f"{pk},")


def test_a_failed_run_has_its_error_below_its_question(mine, person):
    make(person, status="failed", stopped_reason="error", detail="The provider is overloaded.")
    make(person)

    failed, completed = reversed(select(mine.get("/traces/"), ".ask-cell"))

    assert failed.css_first(".why").text() == "The provider is overloaded."
    assert completed.css_first(".why") is None
    assert "overloaded" in export(person, "csv", columns="question,error")


def test_labels_and_scores_are_columns_of_reviewers(mine, person, reviewer):
    pk = make(person, agent_version=3)
    Label.objects.create(run_id=pk, name="refund", author=reviewer)
    Label.objects.create(run_id=pk, name="refund", step=2, author=reviewer)
    names = "question,version,labels,score"

    cells = select(as_user(reviewer).get("/traces/", {"columns": names}), "tbody td")
    texts = {cell.attributes["data-column"]: cell.text(strip=True) for cell in cells}
    assert (texts["version"], texts["labels"], texts["score"]) == ("v3", "refund", "—")
    own = select(mine.get("/traces/", {"columns": names}), "tbody td")
    assert [cell.attributes["data-column"] for cell in own] == ["select", "question", "version"]


def test_the_runs_of_a_chat_are_one_thread(mine, person, monkeypatch):
    first, other, second = (make(person, topic=topic) for topic in ("a", "b", "a"))

    page = get(mine, group="chat")

    assert numbers(page) == [first, second, other]
    assert page.count("<tbody data-group") == 1
    assert numbers(get(mine, group="chat", sort="id")) == [first, second, other]
    monkeypatch.setattr(listing, "PAGE_SIZE", 1)
    assert numbers(get(mine, group="chat", page=3)) == [other]
    assert numbers(get(mine, group="nonsense")) == [second]


def test_a_quick_filter_is_added_to_the_others_and_removed_again():
    def options(text):
        return filter_controls.quick_filters(parse(text, is_reviewer=False), str)

    failed, yesterday, slow, _down = options("agent:helper after:-7d")
    assert not any(option.is_on for option in (failed, yesterday, slow))
    assert failed.url == "agent:helper after:-7d status:failed"
    assert yesterday.url == "agent:helper status:failed on:yesterday"
    failed, yesterday, *_ = options(yesterday.url)
    assert (failed.is_on, yesterday.is_on) == (False, True)
    assert yesterday.url == "agent:helper"


def test_imported_answers_are_included_with_a_link(mine, person):
    imported, own = make(person, route=Run.IMPORTED), make(person)

    [link] = select(mine.get("/traces/"), ".imported")
    shown = mine.get(link.attributes["href"])

    assert numbers(shown.text) == [own, imported]
    assert select(shown, ".imported")[0].attributes["href"] == "/traces/"
