"""The viewer opens a document at a place, a page at a time."""

import re

import pytest

from agents.engine.material import Passage
from agents.models import Collection, Document
from agents.web.library import listing, passages, viewer
from tests.web.library.conftest import add_document

pytestmark = pytest.mark.django_db


def open_document(client, document, **query):
    return client.get(f"/library/documents/{document.pk}/", query).text


def test_a_passage_is_marked_in_its_part(ada, collection):
    document = add_document(collection, ["Black tea.", "Green tea is steeped at 80 °C."])
    chunk = document.chunks.get(part=2)

    page = open_document(ada, document, chunk=chunk.pk)

    assert '<mark id="place" tabindex="-1">Green tea' in page
    assert "Black tea." not in page  # it opens at the second page
    assert 'aria-current="true">Page 2' in page


CITIES = "| City | Limit |\n|---|---|\n| Kyoto | 18 |\n| Paris | 20 |\n| Lima | 25 |\n"


@pytest.mark.parametrize("words", ["limit in Paris", "20", "which city has 20?"])
def test_a_search_opens_the_row_with_its_words(ada, collection, words):
    document = add_document(collection, f"Intro.\n\n{CITIES}", source="cities.csv")
    chunk = document.chunks.get()
    passage = Passage(title="", text=chunk.text, document=document.pk, chunk=chunk.pk)

    page = ada.get(passages.place_url(passage, chunk, words)).text

    assert '<mark class="cited-row" id="place" tabindex="-1">Paris</mark>' in page


def test_a_row_outside_of_the_passage_is_not_marked(ada, collection):
    chunk = add_document(collection, CITIES).chunks.get()

    page = open_document(ada, chunk.document, chunk=chunk.pk, row=["99", "-1", "x"])

    assert "cited-row" not in page
    assert '<mark id="place"' in page


def test_characters_of_a_part_are_marked(ada, document):
    page = open_document(ada, document, part=1, start=6, end=9)

    assert '<mark id="place" tabindex="-1">tea</mark>' in page


def test_a_passage_of_another_document_leads_nowhere(ada, collection, document):
    other = add_document(collection, "Coffee.", source="coffee.md").chunks.get()

    page = open_document(ada, document, chunk=other.pk)

    assert "no longer in this document" in page
    assert "Coffee" not in page


@pytest.mark.parametrize(
    "query", [{"chunk": "x"}, {"part": "99"}, {"start": "-1"}, {"at": "²"}]
)
def test_a_bad_place_opens_the_document(ada, document, query):
    assert "Green tea" in open_document(ada, document, **query)


def test_words_are_found_in_the_document(ada, collection):
    document = add_document(collection, ["Black tea.", "Green TEA and tea."])

    page = open_document(ada, document, q="tea")

    assert "3 results" in page
    assert page.count("&amp;start=") == 3
    assert '<mark id="place"' in page  # the first one is opened


def test_a_long_text_is_read_in_pieces(collection):
    text = "\n\n".join(f"Paragraph {number}. " + "tea " * 100 for number in range(400))
    document = add_document(collection, text)
    start = text.index("Paragraph 300.")

    view = viewer.build(document, viewer.Place(part=1, start=start, end=start + 14))

    assert '<mark id="place" tabindex="-1">Paragraph 300.</mark>' in view.parts[0].html
    assert len(view.parts[0].html) < 3 * viewer.MAX_PAGE_CHARS
    assert view.next_url
    assert view.previous_url


def test_pages_forward_and_back_show_every_part_once(collection):
    document = add_document(collection, [f"Page {n}. " + "x " * 5_000 for n in range(1, 13)])
    seen, place = [], viewer.Place()
    while True:
        view = viewer.build(document, place)
        seen += [part.number for part in view.parts]
        if not view.next_url:
            break
        place = viewer.Place(part=int(view.next_url.rpartition("=")[2]))

    assert seen == list(range(1, 13))
    assert view.previous_url


def test_a_document_from_before_parts_were_saved_is_displayed(ada, document):
    document.parts.all().delete()
    chunk = document.chunks.get()

    assert "<mark" in open_document(ada, document, chunk=chunk.pk)


def test_the_viewer_leads_back_to_the_chat(ada, document):
    url = f"/library/documents/{document.pk}/"

    for referrer, has_link in [
        ("http://testserver/chat/7/", True),
        ("http://evil.example/chat/7/", False),
        ("http://testserver/logout/", False),
    ]:
        page = ada.get(url, headers={"Referer": referrer}).text
        assert ("Back to the chat" in page) == has_link, referrer


def test_beside_a_chat_a_document_is_only_its_text(ada, document):
    url = f"/library/documents/{document.pk}/"
    response = ada.get(url, headers={"HX-Request": "true", "HX-Target": "side-panel"})

    assert response.text.startswith("<article data-panel-page")
    assert f'data-title="{document.title}"' in response.text
    assert 'class="document-text"' in response.text
    assert "HX-Request" in response.headers["Vary"]  # the page itself is another response


def test_a_clip_starts_at_its_time(collection):
    document = add_document(collection, "[01:05] Hello", kind="clip")

    assert viewer.clip_seconds(document.parts.get()) == 65


def test_a_document_of_a_chat_is_open_to_its_members_only(ada, eve, person):
    from agents.models import Membership

    own = Collection.objects.create(name="Chat", topic="chat.7")
    Membership.objects.create(topic="chat.7", user=person)
    url = f"/library/documents/{add_document(own).pk}/"

    assert ada.get(url).status_code == 200
    assert eve.get(url).status_code == 404


def test_a_heading_that_repeats_the_title_is_left_out(collection):
    text = "# Tea & time\n\nGreen tea.\n\n## Time\n\n### Day\n\n# Other\n\n## Last"
    document = add_document(collection, text, source="Tea & time")

    html = viewer.build(document, viewer.Place()).parts[0].html

    headings = re.findall(r"<(h\d)>(.*)</\1>", html)
    assert headings == [("h2", "Time"), ("h3", "Day"), ("h2", "Other"), ("h3", "Last")]


def test_a_document_that_failed_can_be_tried_again_from_its_page(ada, collection):
    document = Document.objects.create(
        collection=collection, source="a.docx", title="a", status="failed", problem="Broken."
    )

    page = open_document(ada, document)

    assert f"/library/documents/{document.pk}/retry/" in page
    assert "Search in this document" not in page


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.pptx", "2 slides"),
        ("a.xlsx", "2 sheets"),
        ("a.pdf", "2 pages"),
        ("a.docx", "2 pages"),
    ],
)
def test_parts_are_counted_in_the_words_of_their_format(name, text):
    assert listing.count_parts(Document(source=name, pages=2)) == text


def test_an_excerpt_of_a_table_has_no_markup():
    text = "- First\n\n| Land | Days |\n|---|---|\n| Japan | 2 |"

    assert passages.excerpt(text, "japan") == "First Land · Days <mark>Japan</mark> · 2"
