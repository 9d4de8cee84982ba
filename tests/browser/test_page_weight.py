"""What a browser transfers for a page, without and with a cache."""

import pytest
from playwright.sync_api import Page

from tests.browser.conversation import CALCULATION, ask_and_wait

MAX_REQUESTS = 25
MAX_BYTES = 250_000

pytestmark = pytest.mark.journey


class Transfers:
    """The requests of a page that reach the server, and the bytes received for each."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.urls: dict[str, str] = {}
        self.bytes: dict[str, int] = {}
        protocol = page.context.new_cdp_session(page)
        protocol.on("Network.requestWillBeSent", self._sent)
        protocol.on("Network.requestServedFromCache", self._cached)
        protocol.on("Network.responseReceived", self._received)
        protocol.on("Network.loadingFinished", self._finished)
        protocol.send("Network.enable")

    def load(self, url: str) -> dict[str, int]:
        """Load a page; return the bytes received for each URL."""
        self.urls.clear()
        self.bytes.clear()
        self.page.goto(url, wait_until="networkidle")
        return {url: self.bytes.get(request, 0) for request, url in self.urls.items()}

    def _sent(self, event: dict) -> None:
        if not event["request"]["url"].startswith(("data:", "blob:")):
            self.urls[event["requestId"]] = event["request"]["url"]

    def _cached(self, event: dict) -> None:
        self.urls.pop(event["requestId"], None)

    def _received(self, event: dict) -> None:
        if event["response"].get("fromDiskCache"):
            self.urls.pop(event["requestId"], None)

    def _finished(self, event: dict) -> None:
        self.bytes[event["requestId"]] = event["encodedDataLength"]


def test_a_chat_is_loaded_in_few_requests_and_its_files_only_once(visit, server, guest):
    # Other tests' chats are in the list of the first user.
    page = visit(server, storage_state=guest)
    ask_and_wait(page, CALCULATION)

    for url in (f"{server.url}/", page.url):
        transfers = Transfers(visit(server, storage_state=guest))
        first = transfers.load(url)
        again = transfers.load(url)

        assert any("/static/" in each for each in first)
        assert len(first) <= MAX_REQUESTS, sorted(first)
        assert 0 < sum(first.values()) <= MAX_BYTES, first
        assert not [each for each in again if "/static/" in each]
