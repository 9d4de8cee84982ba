"""A citation opens the document at the table row that the answer is about."""

import pytest
from django.utils import timezone

from agents.models import AgentStep, Collection, Run
from tests.conftest import as_user
from tests.web.library.conftest import add_document

pytestmark = pytest.mark.django_db

CITIES = "| City | Limit |\n|---|---|\n| Kyoto | 18 |\n| Paris | 20 |\n| Lima | 25 |"
ROW = 'class="cited-row" id="place" tabindex="-1"'


def cited_document(person, question="Limits?", answer="High [1]."):
    """Return a document, and the address of the passage that a run's answer cites."""
    document = add_document(Collection.objects.create(owner=person), CITIES, source="a.csv")
    chunk = document.chunks.get()
    run = Run.objects.create(user=person, query=question, answer=answer)
    found = {"number": 1, "id": "a", "title": "a", "document": document.pk, "chunk": chunk.pk}
    AgentStep.objects.create(
        **{"run": run, "number": 1, "turn": 1, "kind": "tool", "action": "search"},
        **{"observation": f"[1] a (a.csv #0)\n{CITIES}", "sources": [found]},
        **{"first_seq": 2, "started_at": timezone.now(), "status": "done"},
    )
    return document, f"/traces/{run.pk}/sources/1/"


@pytest.mark.parametrize(
    ("question", "answer", "place"),
    [
        ("Limits?", "It is 20 in Paris [1].", f"<mark {ROW}>Paris</mark>"),
        ("Limit in Lima?", "Quite high [1].", f"<mark {ROW}>Lima</mark>"),
        ("Limits?", "All cities have one [1].", '<mark id="place" tabindex="-1">City</mark>'),
    ],
)
def test_a_citation_opens_the_row_of_its_sentence(person, question, answer, place):
    _, url = cited_document(person, question, answer)

    page = as_user(person).get(url, follow=True).text

    assert place in page


def test_beside_a_chat_a_passage_of_a_deleted_document_is_what_the_model_read(person):
    document, url = cited_document(person)
    document.delete()

    headers = {"HX-Request": "true", "HX-Target": "side-panel"}
    part = as_user(person).get(url, headers=headers).text

    assert part.startswith("<article data-panel-page")
    assert "Paris" in part
