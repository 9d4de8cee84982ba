"""A browser without JavaScript that follows every link."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from html import unescape
from urllib.parse import urljoin, urlsplit

import httpx2

from tests.access.sentinels import Found

LINK = re.compile(r'(?:href|hx-get|src)="([^"#]+)')
OF_A_KIND = 6  # pages that only differ in their numbers
MAX_LINKS = 600


class Visitor:
    """A visitor who records every page."""

    def __init__(self, role: str, url: str, cookie: str = "") -> None:
        self.role = role
        self.pages: list[Found] = []
        self.client = httpx2.Client(base_url=url, timeout=60, headers={"Cookie": cookie})
        self.cookie = cookie
        self.token = ""
        if role != "nobody":
            self.token = self.get("/account/").cookies["csrftoken"]
            self.client.headers["Cookie"] = f"{cookie}; csrftoken={self.token}"

    def get(self, address: str, **options) -> httpx2.Response:
        return self._noted(self.client.get(address, **options))

    def post(self, address: str, **data: str) -> httpx2.Response:
        told = {"X-CSRFToken": self.token}
        return self._noted(self.client.post(address, data=data, headers=told))

    def look_around(self, starts: Iterable[str]) -> None:
        """Visit every page reachable by links, a few of each kind."""
        waiting, kinds = deque(starts), Counter[str]()
        seen = set(waiting)
        while waiting and len(seen) < MAX_LINKS:
            address = waiting.popleft()
            kinds[re.sub(r"\d+", "#", address)] += 1
            if kinds[re.sub(r"\d+", "#", address)] > OF_A_KIND:
                continue
            for link in _links(address, self.get(address)):
                if link not in seen:
                    seen.add(link)
                    waiting.append(link)

    def _noted(self, answer: httpx2.Response) -> httpx2.Response:
        headers = "\n".join(f"{k}: {v}" for k, v in answer.headers.items() if k != "set-cookie")
        place = f"page {self.role} {answer.request.method} {answer.request.url.path}"
        self.pages.append(Found(place=place, text=f"{headers}\n{answer.text}"))
        return answer


def _links(address: str, answer: httpx2.Response) -> Iterator[str]:
    if not answer.headers.get("content-type", "").startswith("text/html"):
        return
    for link in LINK.findall(answer.text):
        parts = urlsplit(urljoin(address, unescape(link)))
        if not parts.netloc and not parts.path.startswith("/static/"):
            yield parts.path
