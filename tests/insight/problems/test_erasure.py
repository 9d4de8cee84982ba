"""What is left of a person in problems after their runs or their account are deleted."""

import pytest
from asgiref.sync import sync_to_async

from agents.insight.problems import counting, findings
from agents.insight.problems.models import Problem, ProblemChange
from agents.models import Run
from agents.review.models import Rating
from chat.people_data import erasure

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]
SENTENCE = "My neighbour Hanako Tanaka owes me money since the summer festival in Kamakura"


async def test_an_erased_person_leaves_counts_without_text(person, administrator, make_run):
    def happen():
        run = make_run(detail=f"Can't search for {SENTENCE}", query=SENTENCE)
        rated = {"is_good": False, "reason": "wrong", "comment": SENTENCE}
        rating = Rating.objects.create(run=run, user=person, **rated)
        found = findings.find([Run.objects.get(pk=run.pk)])
        counting.record([*found, *findings.find_ratings([rating])])

    await sync_to_async(happen)()
    await erasure.erase(person, administrator)

    def left():
        return [
            (row.kind, row.message, row.count, row.occurrences.count())
            for row in Problem.objects.order_by("kind")
        ]

    assert await sync_to_async(left)() == [
        ("model_error", "Can't search for ‹input›", 1, 0),
        ("rating", "", 1, 0),
    ]


async def test_text_that_got_into_a_title_is_erased_from_it(person, administrator, make_run):
    def happen():
        make_run(query=SENTENCE)
        other = make_run(detail=SENTENCE, query="Something else", user=administrator)
        counting.record(findings.find([Run.objects.get(pk=other.pk)]))
        ProblemChange.objects.update(by=person)
        return Problem.objects.get().message

    assert await sync_to_async(happen)() == SENTENCE
    await erasure.erase(person, administrator)

    problem = await Problem.objects.aget()
    assert "Hanako" not in problem.message
    assert (await ProblemChange.objects.aget()).by_id is None
