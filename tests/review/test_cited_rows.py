"""A citation opens the document at the table row that the answer is about."""

import pytest
from django.utils import timezone

from agents.models import AgentStep, Collection, Run
from tests.conftest import as_user
from tests.web.library.conftest import add_document

pytestmark = pytest.mark.django_db

CITIES = "| City | Limit |\n|---|---|\n| Kyoto | 18 |\n| Paris | 20 |\n| Lima | 25 |"
ROW = 'class="cited-row" id="place" tabindex="-1"'


@pytest.mark.parametrize(
    ("question", "answer", "place"),
    [
        ("Limits?", "It is 20 in Paris [1].", f"<mark {ROW}>Paris</mark>"),
        ("Limit in Lima?", "Quite high [1].", f"<mark {ROW}>Lima</mark>"),
        ("Limits?", "All cities have one [1].", '<mark id="place" tabindex="-1">City</mark>'),
    ],
)
def test_a_citation_opens_the_row_of_its_sentence(person, question, answer, place):
    document = add_document(Collection.objects.create(owner=person), CITIES, source="a.csv")
    chunk = document.chunks.get()
    run = Run.objects.create(user=person, query=question, answer=answer)
    found = {"number": 1, "id": "a", "title": "a", "document": document.pk, "chunk": chunk.pk}
    AgentStep.objects.create(
        **{"run": run, "number": 1, "turn": 1, "kind": "tool", "action": "search"},
        **{"observation": f"[1] a (a.csv #0)\n{CITIES}", "sources": [found]},
        **{"first_seq": 2, "started_at": timezone.now(), "status": "done"},
    )

    page = as_user(person).get(f"/traces/{run.pk}/sources/1/", follow=True).text

    assert place in page
