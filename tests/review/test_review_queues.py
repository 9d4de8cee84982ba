"""Review queues: who sees which runs, what is scored, and how queues are managed."""

import json
import re

import pytest
from django.contrib.auth.models import User

from agents.access.audit import messages
from agents.models import Agent, AuditEntry, ReviewScope, Run
from agents.review.annotations import feedback, queues
from agents.review.models import Criterion, Review, ReviewQueue, Score
from tests.conftest import as_async_user, as_user
from tests.review.conftest import MAIL, may
from tests.review.test_exports import validate_export

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
PAGES = "/admin/review/reviewqueue/"


@pytest.fixture
def other(db):
    return may(User.objects.create_user("kai"), "review_runs")


@pytest.fixture
def queue(reviewer):
    """A queue of one reviewer, with a criterion of each scale."""
    queue = ReviewQueue.objects.create(name="Safety", instructions="Look for **harm**.")
    queue.reviewers.add(reviewer)
    queue.criteria.create(name="Correctness", about="Is it true?", position=0)
    queue.criteria.create(name="Tone", scale=Criterion.Scale.YES_NO, position=1)
    return queue


@pytest.fixture
def run(personal_run):
    return personal_run


@pytest.fixture
def queued(run, reviewer, queue):
    return feedback.flag(reviewer, run, "", queue.pk)


def criterion(name):
    return Criterion.objects.get(name=name)


def test_only_its_reviewers_see_a_queue_and_are_counted(queued, queue, reviewer, other):
    page = as_user(reviewer).get("/review/")

    assert [tab.waiting for tab in page.context["tabs"]] == [1, 0, 1]
    assert "Safety" in page.text
    assert as_user(reviewer).get(f"/review/?queue={queue.pk}").context["cases"]
    theirs = as_user(other).get("/review/")
    assert (theirs.context["tabs"], theirs.context["cases"]) == ([], [])
    assert "Safety" not in theirs.text
    assert as_user(other).get(f"/review/?queue={queue.pk}").status_code == 404
    badges = [as_user(user).get("/review/open/").text for user in (reviewer, other)]
    assert ["pending" in badge for badge in badges] == [True, False]


def test_without_reviewers_a_queue_is_for_all_of_them(queued, queue, other):
    queue.reviewers.clear()

    assert list(ReviewQueue.objects.for_user(other)) == [queue]
    assert Review.objects.for_user(other).get() == queued


def test_a_review_is_visible_to_whom_it_is_assigned(queued, run, queue, reviewer, other):
    feedback.assign(reviewer, run, other)

    page = as_user(other).get("/review/?show=mine")
    assert [case.run.pk for case in page.context["cases"]] == [run.pk]
    assert page.context["cases"][0].rubric
    assert page.context["cases"][0].queue_choices == ()  # they have no other queue
    assert f"?queue={queue.pk}" not in page.text  # a page that they can't open
    feedback.score(other, run, criterion("Tone").pk, 1)
    assert Score.objects.get().scored_by == other


def test_who_can_change_queues_sees_all(queued, queue, other):
    manager = may(other, "change_reviewqueue")

    assert list(ReviewQueue.objects.for_user(manager)) == [queue]
    assert Review.objects.for_user(manager).exists()


def test_a_queue_shows_no_run_out_of_scope(queued, run, queue, other):
    queue.reviewers.add(other)
    elsewhere = Agent.objects.create(name="elsewhere")
    ReviewScope.objects.create(user=other).agents.add(elsewhere)
    other = User.objects.get(pk=other.pk)
    client = as_user(other)

    assert not Review.objects.for_user(other).exists()
    for path in (f"/review/?queue={queue.pk}", "/review/?show=decided", "/review/"):
        assert client.get(path).context["cases"] == []
    assert client.get(f"/review/?queue={queue.pk}").context["results"] == []
    assert client.post(f"/traces/{run.pk}/score/", {"score": "1:1"}).status_code == 404
    selected = {"q": "", "run": [run.pk], "action": f"flag:{queue.pk}"}
    assert client.post("/traces/selected/", selected).status_code == 302
    assert Review.objects.get().flagged_by != other


def test_the_runs_of_a_queue_are_masked(queued, queue, run, reviewer):
    Score.objects.create(review=queued, criterion=criterion("Tone"), value=1)

    page = as_user(reviewer).get(f"/review/?queue={queue.pk}").text

    assert "Who is " in page
    assert MAIL not in page
    assert "<strong>harm</strong>" in page
    panel = as_user(reviewer).get(f"/traces/{run.pk}/").text
    assert f'id="score-{run.pk}-{criterion("Tone").pk}-1"' in panel


def test_the_name_of_a_saved_example_is_masked(run, reviewer):
    run.examples.create(name=run.query, agent_name="clerk", question=run.query)

    page = as_user(reviewer).get(f"/traces/{run.pk}/").text
    assert "Saved as “Who is ‹email›?”" in page
    assert MAIL not in page


def test_a_score_is_saved_changed_and_removed(queued, run, reviewer):
    client, path = as_user(reviewer), f"/traces/{run.pk}/score/"
    pk = criterion("Correctness").pk

    for value in (2, 4):
        page = client.post(path, {"score": f"{pk}:{value}"}, headers=HTMX).text
    [score] = Score.objects.all()
    assert (score.value, score.scored_by) == (4, reviewer)
    [chosen] = re.findall(r'value="(\d+:\d*)" aria-pressed="true"', page)
    assert chosen == f"{pk}:"

    client.post(path, {"score": chosen}, headers=HTMX)
    assert not Score.objects.exists()
    entry = AuditEntry.objects.filter(action="review.score").order_by("pk").last()
    assert entry.detail == {"criterion": "Correctness", "score": None, "before": 4}
    assert Review.objects.open().exists()  # the verdict is another question


@pytest.mark.parametrize("text", ["{pk}:0", "{pk}:6", "{pk}:x", "0:1", "x", ""])
def test_an_impossible_score_is_refused(queued, run, reviewer, text):
    sent = {"score": text.format(pk=criterion("Correctness").pk)}

    answer = as_user(reviewer).post(f"/traces/{run.pk}/score/", sent, headers=HTMX)

    assert re.search(r'class="problem"[^>]*>[^<]', answer.text)
    assert not Score.objects.exists()


@pytest.mark.parametrize(
    ("action", "sent"),
    [
        ("score", {"score": "{pk}:1"}),
        ("verdict", {"verdict": "correct"}),
        ("correction", {"correction": "It is Eve."}),
        ("assignee", {"me": 1}),
        ("flag", {"why": "Hm.", "queue": 0}),
    ],
)
def test_others_cannot_decide_on_a_run_of_a_queue(queued, run, queue, other, action, sent):
    sent = {name: str(text).format(pk=criterion("Tone").pk) for name, text in sent.items()}
    client = as_user(other)

    page = client.post(f"/traces/{run.pk}/{action}/", sent, headers=HTMX).text

    assert re.search(r'class="problem"[^>]*>[^<]', page)
    assert "Safety" not in page
    assert not Score.objects.exists()
    review = Review.objects.get()
    assert (review.queue, review.assignee, review.why) == (queue, None, "")
    assert (review.verdict, review.correction) == ("", "")
    panel = client.get(f"/traces/{run.pk}/").text
    assert not any(form in panel for form in ("verdicts", "rubric", 'name="queue"'))


def test_others_cannot_reopen_what_its_reviewers_decided(queued, run, reviewer, other, person):
    feedback.decide(reviewer, run, "unsafe", "")
    client, path = as_user(other), f"/traces/{run.pk}/flag/"

    assert path not in client.get(f"/traces/{run.pk}/").text
    page = client.post(path, {"why": "Hm."}, headers=HTMX).text
    assert "in a review queue of other reviewers" in page
    client.post("/traces/selected/", {"q": "", "run": [run.pk], "action": "flag"})
    assert Review.objects.get().verdict == "unsafe"

    as_user(person).post(path, {"why": "Look again."})
    assert Review.objects.open().get().queue == queued.queue


def test_users_flag_for_the_general_queue(run, queue, person, reviewer):
    path = f"/traces/{run.pk}/flag/"

    as_user(person).post(path, {"why": "Wrong.", "queue": queue.pk})
    assert Review.objects.get().queue is None

    feedback.flag(reviewer, run, "", queue.pk)
    as_user(person).post(path, {"why": "Still wrong."})
    assert Review.objects.get().queue == queue


def test_a_reviewer_sends_a_run_to_a_queue_and_back(run, queue, reviewer):
    client = as_user(reviewer)

    client.post(f"/traces/{run.pk}/flag/", {"why": "Harm?", "queue": queue.pk}, headers=HTMX)
    assert Review.objects.get().queue == queue
    moved = {"to": reviewer.username, "queue": 0}
    client.post(f"/traces/{run.pk}/assignee/", moved, headers=HTMX)

    review = Review.objects.get()
    assert (review.queue, review.assignee) == (None, reviewer)
    entries = AuditEntry.objects.filter(action__in=["review.flag", "review.assign"])
    details = [entry.detail["queue"] for entry in entries.order_by("pk")]
    assert details == ["Safety", ""]
    assert messages.detail_lines({"queue": ""}, {}) == ["review queue: General"]


def test_selected_runs_are_flagged_for_a_queue_or_moved_to_it(run, queue, reviewer, person):
    waiting = Run.objects.create(user=person, topic="t", query="q", status="completed")
    feedback.flag(person, waiting, "Wrong.")
    sent = {"q": "", "run": [run.pk, waiting.pk]}
    client = as_user(reviewer)

    assert f'value="flag:{queue.pk}"' in client.get("/traces/").text
    client.post("/traces/selected/", {**sent, "action": "flag"})
    assert Review.objects.filter(queue=None).count() == 2
    page = client.post("/traces/selected/", {**sent, "action": f"flag:{queue.pk}"}, follow=True)

    assert "2 runs flagged for review." in page.text
    assert Review.objects.filter(queue=queue).count() == 2
    assert Review.objects.get(run=waiting).flagged_by == person


def test_the_results_of_a_queue_are_means_over_decided_reviews(queue, reviewer, person):
    for verdict, points, yes in (("correct", 5, 1), ("wrong", 2, 1), ("", 1, 0)):
        run = Run.objects.create(user=person, topic=f"t{points}", status="completed")
        feedback.flag(reviewer, run, "", queue.pk)
        feedback.score(reviewer, run, criterion("Correctness").pk, points)
        feedback.score(reviewer, run, criterion("Tone").pk, yes)
        if verdict:
            feedback.decide(reviewer, run, verdict, "")

    assert queues.results(reviewer, queue) == ["Correctness 3.5", "Tone 100% yes", "2 decided"]
    page = as_user(reviewer).get(f"/review/?queue={queue.pk}&show=decided").text
    assert "Correctness 3.5 · Tone 100% yes · 2 decided" in page


def test_a_queue_is_a_filter_of_the_trace_list(queued, run, reviewer, person):
    listed = as_user(reviewer).get('/traces/?q=queue:"safety"')

    assert f'data-run="{run.pk}"' in listed.text
    assert "data-run" not in as_user(reviewer).get("/traces/?q=queue:other").text
    assert "Only reviewers" in as_user(person).get("/traces/?q=queue:safety").text
    fields = json.loads(as_user(reviewer).get("/traces/completions/").text)["fields"]
    [values] = [field["values"] for field in fields if field["name"] == "queue"]
    assert [value["value"] for value in values] == ["Safety"]


@pytest.mark.parametrize("term", ["queue:safety", "queue:s*", "-queue:other"])
def test_a_queue_of_others_is_not_found_by_its_name(queued, run, reviewer, other, term):
    listed = [as_user(user).get("/traces/", {"q": term}).text for user in (reviewer, other)]

    assert [f'data-run="{run.pk}"' in page for page in listed] == [True, False]


async def test_the_export_has_the_scores_for_reviewers_of_the_queue(
    queued, run, reviewer, other, person
):
    await Score.objects.acreate(
        review=queued, criterion=await Criterion.objects.aget(name="Tone"), value=1
    )
    exported = []
    for user in (reviewer, other, person):
        client = await as_async_user(user)
        answer = await client.get(f"/traces/{run.pk}/export.json")
        text = b"".join([part async for part in answer.streaming_content]).decode()
        exported.append(validate_export(text)["scores"])

    assert [len(scores) for scores in exported] == [1, 0, 0]
    [score] = exported[0]
    assert (score["queue"], score["criterion"], score["value"]) == ("Safety", "Tone", True)


# The console


def form(*rows, **fields):
    """Return the posted form of a queue; each row is an ID, a name and a scale."""
    columns = {
        "criteria-id": [row[0] for row in rows],
        "criteria-name": [row[1] for row in rows],
        "criteria-about": ["" for _row in rows],
        "criteria-scale": [row[2] for row in rows],
    }
    return {"name": "Safety", "instructions": "", **columns, **fields}


def test_a_queue_is_added_with_its_rubric(admin_client, reviewer, person):
    page = admin_client.get(f"{PAGES}add/").text
    offered = re.findall(r'<input type="checkbox" name="reviewers" value="(\d+)"', page)
    assert str(reviewer.pk) in offered
    assert str(person.pk) not in offered  # no reviewer

    rows = [("", "Correctness", "points"), ("", "  Tone ", "yes_no"), ("", "", "points")]
    admin_client.post(f"{PAGES}add/", form(*rows, reviewers=[reviewer.pk]))

    queue = ReviewQueue.objects.get()
    assert list(queue.reviewers.all()) == [reviewer]
    assert [(c.name, c.scale) for c in queue.criteria.all()] == [
        ("Correctness", "points"),
        ("Tone", "yes_no"),
    ]
    entry = AuditEntry.objects.get(action="console.added", subject=f"reviewqueue:{queue.pk}")
    assert "rei" not in json.dumps(entry.detail)
    assert "rei" in messages.summarize_detail(entry.detail, messages.person_names([entry]))


def test_criteria_are_reordered_renamed_and_deleted(admin_client, queue, queued):
    first, second = queue.criteria.all()
    Score.objects.create(review=queued, criterion=first, value=3)
    page = f"{PAGES}{queue.pk}/change/"

    rows = [(second.pk, "Manners", "yes_no"), ("", "Sources", "points")]
    admin_client.post(page, form(*rows))

    assert [c.name for c in queue.criteria.all()] == ["Manners", "Sources"]
    assert queue.criteria.first() == second
    assert not Score.objects.exists()
    entry = AuditEntry.objects.get(action="console.changed", subject=f"reviewqueue:{queue.pk}")
    before, after = entry.detail["changes"]["criteria"]
    assert before == ["Correctness (1 to 5)", "Tone (Yes or no)"]
    assert after == ["Manners (Yes or no)", "Sources (1 to 5)"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("", "Tone", "points"), ("", "tone", "yes_no")], "in the rubric twice"),
        ([("", "Tone", "stars")], "stars"),
        ([("", "x" * 65, "points")], "64"),
        ([("", f"c{n}", "points") for n in range(21)], "up to 20 criteria"),
    ],
)
def test_an_invalid_rubric_is_refused_and_what_was_typed_stays(admin_client, rows, message):
    page = admin_client.post(f"{PAGES}add/", form(*rows)).text

    assert message in page
    assert f'value="{rows[0][1]}"' in page
    assert not ReviewQueue.objects.exists()


def test_the_scale_of_a_criterion_with_scores_cannot_change(admin_client, queue, queued):
    first, second = queue.criteria.all()
    Score.objects.create(review=queued, criterion=first, value=3)

    rows = [(first.pk, "Correctness", "yes_no"), (second.pk, "Tone", "points")]
    page = admin_client.post(f"{PAGES}{queue.pk}/change/", form(*rows)).text

    assert "Correctness already has scores" in page
    assert [c.scale for c in queue.criteria.all()] == ["points", "yes_no"]


def test_a_name_is_taken_whatever_its_case(admin_client, queue):
    page = admin_client.post(f"{PAGES}add/", form(name="SAFETY")).text

    assert "A review queue with this name already exists." in page
    assert ReviewQueue.objects.count() == 1


def test_a_rubric_that_changed_meanwhile_is_not_overwritten(admin_client, queue):
    page = f"{PAGES}{queue.pk}/change/"
    seen = admin_client.get(page).context["seen"]
    queue.criteria.create(name="Sources", position=2)

    answer = admin_client.post(page, form(_seen=seen))

    assert "changed while you were editing" in answer.text
    assert queue.criteria.count() == 3


def test_the_reviews_of_a_deleted_queue_go_to_the_general_one(admin_client, queue, queued):
    Score.objects.create(review=queued, criterion=criterion("Tone"), value=1)
    page = f"{PAGES}{queue.pk}/delete/"

    assert "1 review moves to the general queue." in admin_client.get(page).text
    admin_client.post(page, {"post": "yes"})

    review = Review.objects.get()
    assert review.queue is None
    assert not Score.objects.exists()
    [item] = admin_client.get("/admin/recently-deleted/").context["items"]
    admin_client.post(f"/admin/recently-deleted/restore/?items={item.key}")
    assert Review.objects.get().queue == ReviewQueue.objects.get() == queue
    assert Score.objects.get().value == 1


def test_a_queue_stays_closed_when_its_last_reviewers_are_deleted(
    admin_user, queue, reviewer, other, person
):
    queue.reviewers.add(person)
    person.delete()
    assert [*queue.reviewers.all()] == [reviewer]

    reviewer.delete()

    assert [*queue.reviewers.all()] == [admin_user]
    assert not ReviewQueue.objects.for_user(other).exists()
    [entry] = AuditEntry.objects.filter(action="console.changed")
    assert entry.detail["name"] == "Safety"


def test_who_can_only_view_queues_reads_them(queue, django_user_model):
    viewer = django_user_model.objects.create_user("viv", is_staff=True)
    client = as_user(may(viewer, "view_reviewqueue"))

    page = client.get(f"{PAGES}{queue.pk}/change/").text

    assert "Correctness, Tone" in page
    assert client.post(f"{PAGES}{queue.pk}/change/", form()).status_code == 403
    assert queue.criteria.count() == 2
