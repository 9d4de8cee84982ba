"""Web pages and sitemaps are fetched again on their schedule, from a real server."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents import knowledge
from agents.db.sentences import translate
from agents.knowledge import ingestion
from agents.knowledge.ingestion import refetching
from agents.models import Collection, Document, Sitemap

pytestmark = pytest.mark.django_db


class Site:
    """Pages by path: their text, or a status. Remembers each request and its answer."""

    def __init__(self) -> None:
        self.pages: dict[str, str | int] = {}
        self.has_tags = True
        self.seen: list[tuple[str, int]] = []
        self.url = ""

    def add_sitemap(self, *paths: str) -> str:
        found = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in paths)
        self.pages["/sitemap.xml"] = f"<urlset>{found}</urlset>"
        return f"{self.url}/sitemap.xml"

    def answers(self, path: str) -> list[int]:
        return [status for seen, status in self.seen if seen == path]


@pytest.fixture
def site(settings: Any) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = site.pages.get(self.path, 404)
            tag = f'"{hash(page)}"'
            status = page if isinstance(page, int) else 200
            if site.has_tags and self.headers.get("If-None-Match") == tag:
                status = 304
            site.seen.append((self.path, status))
            body = str(page).encode() if status == 200 else b""
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            if site.has_tags:
                self.send_header("ETag", tag)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    settings.PAGES_ALLOW = [f"127.0.0.1:{server.server_port}"]
    yield site
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, settings: Any) -> None:
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann")


@pytest.fixture
def collection(ann: User) -> Collection:
    return Collection.objects.create(name="Birds", owner=ann, is_open=True)


@pytest.fixture
def page(site: Site, collection: Collection, ann: User) -> Document:
    """A page that is fetched every day."""
    site.pages["/heron"] = "<title>Heron</title><p>The heron nests in reeds.</p>"
    document = ingestion.add_url(collection, ann, f"{site.url}/heron")
    ingestion.process_waiting()
    document.refresh_from_db()
    ingestion.set_schedule(document, "daily", ann)
    return document


def fetch_later(days: float = 1.01) -> int:
    """Let the periodic job run in so many days; return how many sources were due."""
    count = ingestion.fetch_due(timezone.now() + timedelta(days=days))
    ingestion.process_waiting()
    return count


def test_a_page_is_fetched_when_it_is_due_and_not_before(site: Site, page: Document) -> None:
    assert fetch_later(0.9) == 0
    assert fetch_later() == 1
    assert site.answers("/heron") == [200, 304]
    before = page.indexed_at
    page.refresh_from_db()
    assert (page.status, page.indexed_at) == ("ready", before)
    assert page.next_fetch_at is not None
    assert page.next_fetch_at > timezone.now() + timedelta(days=1.9)


def test_a_host_for_tools_is_private_for_pages_and_looks_like_one_that_does_not_exist(
    site: Site, collection: Collection, ann: User, settings: Any
) -> None:
    site.pages["/salaries"] = "<title>Salaries</title><p>Secret.</p>"
    settings.EGRESS_ALLOW = settings.PAGES_ALLOW
    settings.PAGES_ALLOW = []
    hosts = (site.url, "http://127.0.0.1:9", "http://no-such-host.invalid")

    for host in hosts:
        ingestion.add_url(collection, ann, f"{host}/salaries")
    ingestion.process_waiting()

    rows = set(Document.objects.values_list("status", "problem", "attempts"))
    assert len(rows) == 1
    assert "ASHIATO_PAGES_ALLOW" in next(iter(rows))[1]
    assert not site.seen


def test_a_changed_page_is_indexed_again(site: Site, page: Document) -> None:
    site.pages["/heron"] = "<title>Heron</title><p>The heron migrates in October.</p>"
    fetch_later()
    assert "October" in knowledge.search("heron")[0].text
    page.refresh_from_db()
    assert page.fetched_at is not None


def test_a_page_with_other_bytes_and_the_same_text_is_not_indexed_again(
    site: Site, page: Document
) -> None:
    site.has_tags = False
    site.pages["/heron"] = f"{site.pages['/heron']}<!-- served in 12 ms -->"
    before = page.indexed_at
    fetch_later()
    page.refresh_from_db()
    assert site.answers("/heron") == [200, 200]
    assert (page.status, page.indexed_at) == ("ready", before)


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_gone_is_marked_and_stays_searchable(
    site: Site, page: Document, status: int
) -> None:
    site.pages["/heron"] = status
    fetch_later()
    page.refresh_from_db()
    assert page.status == "ready"
    assert page.fetch_problem.startswith(f"This page is no longer on the web (status {status})")
    assert knowledge.search("heron")
    site.pages["/heron"] = "<title>Heron</title><p>The heron is back.</p>"
    fetch_later(2.1)
    page.refresh_from_db()
    assert page.fetch_problem == ""


def test_a_server_that_is_down_is_asked_again_the_next_day(site: Site, page: Document) -> None:
    ingestion.set_schedule(page, "monthly", page.scheduled_by)
    site.pages["/heron"] = 503
    fetch_later(31)
    page.refresh_from_db()
    assert page.status == "ready"
    assert "status 503" in page.fetch_problem
    assert page.next_fetch_at is not None
    assert page.next_fetch_at < timezone.now() + timedelta(days=1.1)


def test_a_schedule_ends_with_the_access_of_the_user_who_set_it(
    site: Site, page: Document
) -> None:
    User.objects.filter(username="ann").update(is_active=False)
    assert fetch_later() == 0
    page.refresh_from_db()
    assert (page.fetch_interval, page.next_fetch_at) == ("never", None)
    assert page.fetch_problem == refetching.NO_RIGHTS
    assert site.answers("/heron") == [200]


def test_a_deleted_collection_is_not_fetched(page: Document) -> None:
    Collection.objects.update(deleted_at=timezone.now())
    assert fetch_later() == 0


def test_two_processes_fetch_a_page_once(site: Site, page: Document) -> None:
    later = timezone.now() + timedelta(days=1.01)
    stale = Document.objects.get(pk=page.pk)
    assert refetching._claim(page, later)
    assert not refetching._claim(stale, later)


# Sitemaps


@pytest.fixture
def sitemap(site: Site, collection: Collection, ann: User) -> Sitemap:
    """A sitemap of two pages that is fetched every week."""
    for bird in ("heron", "stork", "crane"):
        site.pages[f"/{bird}"] = f"<title>{bird}</title><p>The {bird} nests.</p>"
    found = ingestion.add_sitemap(collection, ann, site.add_sitemap("/heron", "/stork"), 3)
    ingestion.process_waiting()
    ingestion.set_schedule(found, "weekly", ann)
    return found


def test_new_pages_of_a_sitemap_are_added_and_the_others_are_asked_for_changes(
    site: Site, sitemap: Sitemap
) -> None:
    site.add_sitemap("/heron", "/stork", "/crane")
    assert fetch_later(7.1) == 1
    assert sitemap.documents.count() == 3
    assert site.answers("/heron") == [200, 304]
    assert knowledge.search("crane")


def test_a_sitemaps_limit_holds_when_it_grows(site: Site, sitemap: Sitemap) -> None:
    site.add_sitemap("/heron", "/stork", "/crane", "/4", "/5")
    fetch_later(7.1)
    assert sitemap.documents.count() == 3


def test_a_page_that_a_user_deleted_does_not_come_back(site: Site, sitemap: Sitemap) -> None:
    ingestion.delete(sitemap.documents.get(title="stork"))
    fetch_later(7.1)
    assert [each.title for each in sitemap.documents.all()] == ["heron"]


def test_a_page_that_left_the_sitemap_and_the_web_is_marked(
    site: Site, sitemap: Sitemap
) -> None:
    site.add_sitemap("/heron")
    del site.pages["/stork"]
    fetch_later(7.1)
    assert "no longer on the web" in sitemap.documents.get(title="stork").fetch_problem


def test_a_sitemap_that_cannot_be_read_says_why_and_keeps_its_pages(
    site: Site, sitemap: Sitemap
) -> None:
    site.pages["/sitemap.xml"] = "<html>Moved</html>"
    fetch_later(7.1)
    sitemap.refresh_from_db()
    assert sitemap.fetch_problem == (
        "The sitemap couldn't be fetched. There is no sitemap at this URL."
    )
    assert translate(sitemap.fetch_problem)
    assert sitemap.documents.count() == 2
