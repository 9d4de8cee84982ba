"""Documents are queued, read in the background, and survive whatever happens meanwhile."""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.utils import timezone

from agents import knowledge
from agents.db import jobs
from agents.engine.sentences import Sentence
from agents.knowledge import ingestion
from agents.knowledge.files import save
from agents.knowledge.ingestion import documents, leases, queue, sitemaps, web_pages
from agents.knowledge.parsing import (
    NeedsRecognition,
    ParsedDocument,
    ParsedPart,
    UnreadableDocument,
    process,
)
from agents.knowledge.parsing.parsers import (
    archive,
    epub,
    html,
    image,
    office,
    pdf,
    plain,
    sniffing,
    values,
)
from agents.models import Chunk, Collection, Document, JobCrash, StoredFile
from agents.tools.egress import EgressRefused, Response

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

Add = Callable[..., Document]
MODULES = (*(queue, process, archive, epub, image, office, pdf, plain, sniffing, html, values),)
NORMAL = leases.LaneKind(is_slow=False, is_urgent=False)
URGENT = leases.LaneKind(is_slow=False, is_urgent=True)
SLOW = leases.LaneKind(is_slow=True, is_urgent=False)
READY, FAILED, QUEUED = Document.Status.READY, Document.Status.FAILED, Document.Status.QUEUED


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, settings: Any) -> None:
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }


@pytest.fixture(autouse=True)
def _parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse in this process; the child has tests of its own."""
    from agents.knowledge.parsing import parsers

    def parse(
        path: Path, name: str, *, mime_type: str, progress: Any, **more: Any
    ) -> ParsedDocument:
        progress(0, 1)
        return parsers.parse(
            parsers.SourceFile(data=Path(path).read_bytes(), name=name, mime_type=mime_type)
        )

    monkeypatch.setattr(queue, "parse", parse)


@pytest.fixture
def collection() -> Collection:
    return Collection.objects.create(name="Birds", is_open=True)


@pytest.fixture
def add(collection: Collection) -> Add:
    def add_text(text: str, name: str = "a.md", owner: User | None = None) -> Document:
        stored = save(text.encode(), name=name, owner=None)
        return ingestion.add_file(collection, owner, name, stored)

    return add_text


def test_a_queued_file_becomes_a_document_that_is_found(add: Add) -> None:
    document = add("# Herons\n\nThe heron nests in reeds.")
    assert document.status == QUEUED
    assert ingestion.process_waiting() == 1
    document.refresh_from_db()
    assert (document.status, document.title, document.language) == (READY, "Herons", "en")
    assert document.lease_until is None
    assert knowledge.search("heron")[0].title == "Herons"


@pytest.mark.parametrize("other", ["Cafe\u0301.md", "caf\u00e9.md", "CAF\u00c9.md"])
def test_documents_whose_names_look_the_same_are_told_apart(add: Add, other: str) -> None:
    first, second = add("Herons.", "Caf\u00e9.md"), add("Cranes.", other)
    waiting = second.title
    ingestion.process_waiting()
    titles = [Document.objects.get(pk=each.pk).title for each in (first, second)]
    assert titles == ["Caf\u00e9", waiting]
    assert waiting == f"{other.removesuffix('.md')} (2)"
    assert add("More cranes.", other).pk == second.pk


def test_an_unchanged_file_is_not_read_again(add: Add) -> None:
    first = add("The heron nests.")
    ingestion.process_waiting()
    again = add("The heron nests.")
    assert again.pk == first.pk
    assert ingestion.process_waiting() == 0


def test_old_passages_serve_until_the_new_ones_are_ready(
    add: Add, django_capture_on_commit_callbacks: Any
) -> None:
    add("The heron nests.")
    ingestion.process_waiting()
    with django_capture_on_commit_callbacks(execute=True):
        add("The stork nests.")
    assert knowledge.search("heron")
    ingestion.process_waiting()
    assert not knowledge.search("heron")
    assert knowledge.search("stork")
    assert StoredFile.objects.count() == 1


def test_a_failure_says_why_and_can_be_retried(add: Add) -> None:
    document = add("PK\x05\x06", "a.txt")
    ingestion.process_waiting()
    document.refresh_from_db()
    assert (document.status, document.problem) == (
        FAILED,
        "Archives can't be read. Unpack this one and upload its files.",
    )
    assert ingestion.retry(document)
    assert document.status == QUEUED


def test_text_without_letters_is_a_failure_and_not_an_empty_document(add: Add) -> None:
    document = add(" \n \n")
    ingestion.process_waiting()
    document.refresh_from_db()
    assert (document.status, document.problem) == (FAILED, "This file contains no text.")
    assert document.indexed_at is None


def test_a_canceled_document_is_not_indexed(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    document = add("The heron nests.")

    def parse(*args: Any, progress: Any, **kwargs: Any) -> ParsedDocument:
        ingestion.cancel(document)
        queue.Lease.update(progress.__self__, done=1)
        raise AssertionError("The parser goes on.")

    monkeypatch.setattr(queue, "parse", parse)
    ingestion.process_waiting()
    document.refresh_from_db()
    assert (document.status, document.problem) == (Document.Status.CANCELLED, "")


def test_a_document_deleted_while_it_is_read_stays_deleted(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add("The heron nests.")

    def parse(*args: Any, **kwargs: Any) -> ParsedDocument:
        ingestion.delete(Document.objects.get(pk=document.pk))
        return ParsedDocument(title="x", parts=[ParsedPart(text="The heron.")])

    monkeypatch.setattr(queue, "parse", parse)
    ingestion.process_waiting()
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


def test_another_process_takes_over_when_the_lease_has_ended(add: Add) -> None:
    document = add("The heron nests.")
    claimed = queue.claim()
    assert claimed == document
    assert queue.claim() is None
    Document.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    taken = queue.claim()
    assert taken is not None
    ingestion.process(claimed)  # the first one wakes up again, and has nothing to say
    document.refresh_from_db()
    assert document.status == Document.Status.READING
    ingestion.process(taken)
    document.refresh_from_db()
    assert document.status == READY


def end_process() -> None:
    """Claim a document and let the process die with it."""
    assert queue.claim() is not None
    Document.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_document_survives_any_number_of_dead_processes(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add("The heron nests.")
    for _ in range(5):
        end_process()

    def read_here(kind: str, pk: int, claim: str, **watch: object) -> str:
        ingestion.process_claimed(pk, claim)
        return ""

    monkeypatch.setattr(jobs, "isolate", read_here)
    ingestion.process_waiting()

    document.refresh_from_db()
    assert (document.status, document.attempts) == (READY, 0)


def test_a_document_that_ends_its_own_process_twice_is_given_up_with_the_reason(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add("The heron nests.")
    for _ in range(jobs.ISOLATED_AFTER):
        end_process()
    monkeypatch.setattr(jobs, "isolate", lambda *claim, **watch: "SIGKILL")

    assert ingestion.process_waiting() == jobs.MAX_CRASHES
    document.refresh_from_db()
    assert document.status == FAILED
    assert document.problem == queue.ENDED_PROCESS.fill(signal="SIGKILL")


def test_a_stop_gives_slow_documents_back(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    document = add("The heron nests.")

    def stop(*args: object, **kwargs: object) -> ParsedDocument:
        queue.give_back()
        return ParsedDocument(title="Herons", parts=[])

    monkeypatch.setattr(queue, "parse", stop)
    claimed = queue.claim()
    assert claimed is not None
    ingestion.process(claimed)

    document.refresh_from_db()
    assert (document.status, document.lease_until) == (QUEUED, None)
    assert not JobCrash.objects.exists()


def test_an_unexpected_error_is_tried_again_later(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add("The heron nests.")
    monkeypatch.setattr(queue, "index_document", lambda *args, **kwargs: 1 / 0)
    ingestion.process_waiting()
    document.refresh_from_db()
    assert document.status == QUEUED
    assert document.lease_until is not None
    assert document.lease_until > timezone.now()


def test_one_users_many_files_do_not_hold_up_anothers(add: Add) -> None:
    ann, bob = (User.objects.create_user(name) for name in ("ann", "bob"))
    for at in range(3):
        add(f"heron {at}", f"{at}.md", ann)
    theirs = add("stork", "b.md", bob)
    first, second = queue.claim(), queue.claim()
    assert theirs in (first, second)


def test_a_slow_file_has_a_lane_of_its_own(
    add: Add, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = save(b"ID3" + bytes(200), name="talk.mp3", owner=None)
    recording = ingestion.add_file(collection, None, "talk.mp3", sound)
    scan, note = add("scan", "scan.md"), add("The heron nests.", "note.md")

    def parse(path: Path, name: str, *, recognizes: bool, **more: Any) -> ParsedDocument:
        if name == "scan.md" and not recognizes:
            raise NeedsRecognition
        return ParsedDocument(title=name, parts=[ParsedPart(text="The heron.")])

    monkeypatch.setattr(queue, "parse", parse)
    queue.LANES[NORMAL].read_all()
    assert {each.source for each in Document.objects.filter(status=READY)} == {note.source}
    slow = {queue.claim(SLOW), queue.claim(SLOW)}
    assert slow == {recording, scan}
    assert queue.claim() is None


def test_a_file_that_takes_long_moves_to_the_slow_lane(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = User.objects.create_user("ann")
    hostile = add("heron", "hostile.md", ann)
    monkeypatch.setattr(queue, "NORMAL_SECONDS", -1)
    queue.LANES[NORMAL].read_all()
    hostile.refresh_from_db()
    assert (hostile.status, hostile.is_slow, hostile.attempts) == (QUEUED, True, 0)
    queue.LANES[SLOW].read_all()
    hostile.refresh_from_db()
    assert hostile.status == READY


def test_a_file_with_much_text_is_indexed_in_the_slow_lane(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "NORMAL_CHARS", 20)
    book, note = add("heron " * 100, "book.md"), add("The heron.", "note.md")
    queue.LANES[NORMAL].read_all()
    book.refresh_from_db()
    note.refresh_from_db()
    assert (book.status, book.is_slow, note.status) == (QUEUED, True, READY)


def test_a_text_that_takes_long_to_index_moves_to_the_slow_lane(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = add("The heron.", "book.md")
    parsed = ParsedDocument(title="Book", parts=[ParsedPart(text="The heron.")])

    def index_slowly(document: Document, parts: Any, *, progress: Any, **options: Any) -> None:
        progress(1, 2)

    monkeypatch.setattr(queue, "NORMAL_SECONDS", 0)
    monkeypatch.setattr(queue, "parse", lambda *args, **options: parsed)
    monkeypatch.setattr(queue, "index_document", index_slowly)
    queue.LANES[NORMAL].read_all()
    book.refresh_from_db()
    assert (book.status, book.is_slow) == (QUEUED, True)


def test_what_fails_because_the_process_ends_is_no_attempt(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*args: Any, **options: Any) -> None:
        leases.stopping.set()
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    book = add("The heron.", "book.md")
    monkeypatch.setattr(queue, "_process", end)
    try:
        queue.LANES[NORMAL].read_all()
    finally:
        leases.stopping.clear()
    book.refresh_from_db()
    assert (book.status, book.attempts, book.lease_until) == (QUEUED, 0, None)


def test_a_file_in_a_chat_waits_for_nobody_elses_file(
    add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While two users' files take both slots of libraries, and a third one's is urgent, too."""
    ann, bob, carl, dora = (User.objects.create_user(name) for name in ("a", "b", "c", "d"))
    for owner in (ann, bob):
        add("heron", f"{owner.pk}.md", owner)
    chat = Collection.objects.create(name="Chat", topic="chat/1")
    other = Collection.objects.create(name="Other", topic="chat/2")
    stored = save(b"The stork.", name="b.md", owner=None)
    ingestion.add_file(other, carl, "b.md", stored)
    urgent = ingestion.add_file(chat, dora, "b.md", stored)
    order: list[int] = []

    def read(document: Document, *, is_slow: bool) -> None:
        order.append(document.owner_id)
        if document.owner_id == ann.pk:  # while hers is read, the others start
            queue.LANES[NORMAL].read_all()
            queue.LANES[URGENT].read_all()

    monkeypatch.setattr(queue, "process", read)
    queue.LANES[NORMAL].read_all()
    assert sorted(order) == [ann.pk, bob.pk, carl.pk, dora.pk]
    assert leases.lane_kind(urgent) == URGENT


def test_a_user_has_one_slot_of_a_lane_at_most(add: Add) -> None:
    ann, bob = (User.objects.create_user(name) for name in ("ann", "bob"))
    for at in range(3):
        add(f"heron {at}", f"{at}.md", ann)
    lane = queue.LANES[NORMAL]
    first = lane._claim()
    assert lane._claim() is None
    theirs = add("stork", "b.md", bob)
    assert lane._claim() == theirs
    lane._busy.clear()
    assert first is not None


def test_a_users_second_recording_waits_while_others_are_read(add: Add) -> None:
    ann, bob = (User.objects.create_user(name) for name in ("ann", "bob"))
    for at in range(2):
        add(f"heron {at}", f"{at}.md", ann)
    theirs = add("stork", "b.md", bob)
    assert queue.claim(busy=[ann.pk]) == theirs
    assert queue.claim(busy=[ann.pk]) is None


def test_deleting_removes_everything_derived_and_the_file(add: Add) -> None:
    document = add("The heron nests.")
    ingestion.process_waiting()
    document.refresh_from_db()
    assert document.file is not None
    path = document.file.path
    ingestion.delete(document)
    assert not Chunk.objects.exists()
    assert not StoredFile.objects.exists()
    assert not storages["files"].exists(path)
    assert knowledge.search("heron") == []


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\docs\\a.pdf", "C:/docs/a.pdf"),
        ("a\0b.md", "ab.md"),
        ("", "file"),
    ],
)
def test_a_name_leads_nowhere_else(name: str, cleaned: str) -> None:
    assert documents.clean_name(name) == cleaned


def test_a_long_name_keeps_its_end() -> None:
    name = documents.clean_name("x" * 1_000 + ".pdf")
    assert len(name) == 500
    assert name.endswith(".pdf")


def test_a_folder_is_read_without_hidden_files_and_links(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("a.md", "sub/b.txt", ".git/c.md", "d.exe"):
        (folder / name).write_text("The heron nests.")
    (folder / "link.md").symlink_to("/etc/hostname")
    found = documents.find_files(folder)
    assert [str(path.relative_to(folder)) for path in found] == ["a.md", "sub/b.txt"]


# The web


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> dict[str, Response]:
    """Answers to requests by their addresses."""
    pages: dict[str, Response] = {}

    def get(url: str, headers: Any = None, most_bytes: int = 0) -> Response:
        page = pages[url]
        known = (headers or {}).get("If-None-Match")
        if known and known == page.headers.get("etag"):
            return Response(status=304, headers={}, content=b"")
        return page

    monkeypatch.setattr(web_pages, "get", get)
    return pages


def page(text: str, etag: str = "") -> Response:
    headers = {"content-type": "text/html; charset=utf-8", "etag": etag}
    return Response(status=200, headers=headers, content=text.encode())


def test_a_page_is_fetched_and_only_read_again_if_it_changed(
    collection: Collection, site: dict[str, Response]
) -> None:
    url = "https://example.com/birds"
    site[url] = page("<title>Birds</title><p>The heron nests.", etag='"1"')
    document = ingestion.add_url(collection, None, f"{url}#nests")
    ingestion.process_waiting()
    document.refresh_from_db()
    assert (document.status, document.title, document.url) == (READY, "Birds", url)
    before = document.indexed_at
    assert ingestion.refresh(document)
    ingestion.process_waiting()
    document.refresh_from_db()
    assert (document.status, document.indexed_at) == (READY, before)
    site[url] = page("<p>The stork nests.", etag='"2"')
    ingestion.refresh(document)
    ingestion.process_waiting()
    assert knowledge.search("stork")
    assert StoredFile.objects.count() == 1


def test_a_missing_page_is_a_failure_with_its_status(
    collection: Collection, site: dict[str, Response]
) -> None:
    site["https://example.com/"] = Response(status=404, headers={}, content=b"")
    document = ingestion.add_url(collection, None, "https://example.com/")
    ingestion.process_waiting()
    document.refresh_from_db()
    assert (document.status, document.problem) == (
        FAILED,
        "The server returned status 404.",
    )


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "javascript:1", "nothing"])
def test_only_web_addresses_are_added(collection: Collection, url: str) -> None:
    with pytest.raises(EgressRefused):
        ingestion.add_url(collection, None, url)
    assert not Document.objects.exists()


def test_a_private_address_is_refused_when_it_is_fetched(collection: Collection) -> None:
    document = ingestion.add_url(collection, None, "http://127.0.0.1/secret")
    ingestion.process_waiting()
    document.refresh_from_db()
    assert document.status == FAILED
    assert "ASHIATO_PAGES_ALLOW" in document.problem


def test_pages_whose_names_hang_do_not_wait_for_each_other(monkeypatch):
    began, is_over = threading.Semaphore(0), threading.Event()

    def hang(*_arguments: Any, **_more: Any) -> None:
        began.release()
        is_over.wait(30)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with ThreadPoolExecutor(12) as users:
        fetches = [users.submit(web_pages.get, "http://hang.example/") for _ in range(12)]
        have_begun = [began.acquire(timeout=10) for _ in fetches]
        is_over.set()

    assert all(have_begun)
    assert {type(each.exception()) for each in fetches} == {web_pages.PageNotPublic}


def sitemap(*places: str, tag: str = "urlset") -> Response:
    found = "".join(f"<url><loc>{place}</loc></url>" for place in places)
    return page(f'<{tag} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{found}</{tag}>')


def test_a_sitemap_adds_pages_of_its_host_up_to_the_limit(
    collection: Collection, site: dict[str, Response]
) -> None:
    root, other = "https://example.com/sitemap.xml", "https://example.com/other.xml"
    site[root] = sitemap(other, root, tag="sitemapindex")
    pages = [f"https://example.com/{at}" for at in range(5)]
    site[other] = sitemap("https://elsewhere.example/x", *pages)
    added = ingestion.add_sitemap(collection, None, root, limit=3)
    assert [document.url for document in added.documents.order_by("pk")] == pages[:3]


def test_an_endless_sitemap_is_refused_and_a_repeated_one_read_once(
    collection: Collection, site: dict[str, Response]
) -> None:
    root, pages = "https://example.com/sitemap.xml", "https://example.com/pages.xml"
    site[root] = sitemap(*[root, pages] * 50_000, tag="sitemapindex")
    site[pages] = sitemap("https://example.com/1")
    began = time.process_time()
    assert sitemaps.find_pages(root, 9) == ["https://example.com/1"]
    assert time.process_time() - began < 5
    site[pages] = Response(status=200, headers={}, content=b"<urlset>" + b"<a/>" * 700_000)
    with pytest.raises(sitemaps.SitemapUnreadable, match="50,000"):
        sitemaps.find_pages(pages, 9)


@pytest.mark.parametrize(
    "content",
    [
        "<html><body>Not found</body></html>",
        '<!DOCTYPE urlset [<!ENTITY x "y">]><urlset><url><loc>&x;</loc></url></urlset>',
        "nothing",
    ],
)
def test_what_is_no_sitemap_says_so(
    collection: Collection, site: dict[str, Response], content: str
) -> None:
    site["https://example.com/s"] = page(content)
    with pytest.raises(sitemaps.SitemapUnreadable, match="no sitemap"):
        ingestion.add_sitemap(collection, None, "https://example.com/s")


def test_unreadable_documents_have_one_error_everywhere() -> None:
    assert knowledge.UnreadableDocument is UnreadableDocument


def test_every_reason_can_be_translated() -> None:
    said = {
        constant
        for module in MODULES
        for name, constant in vars(module).items()
        if name.isupper() and isinstance(constant, str) and constant.endswith(".")
    }
    assert len(said) > 20
    assert {reason for reason in said if not isinstance(reason, Sentence)} == set()
