"""Search services on the web: what each is sent, and how its response is read."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Literal
from urllib.parse import urlencode

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.engine.text import shorten_line
from agents.tools.egress import Egress, Response, fetch
from agents.tools.http.response_text import format_status

ServiceName = Literal["searxng", "brave", "tavily"]

ADDRESSES: dict[ServiceName, str] = {
    "searxng": "",  # each has its own
    "brave": "https://api.search.brave.com",
    "tavily": "https://api.tavily.com",
}
PATHS: dict[ServiceName, str] = {
    "searxng": "/search",
    "brave": "/res/v1/web/search",
    "tavily": "/search",
}
MAX_RESULTS = 20
MAX_QUERY_CHARS = 400  # the least that a service takes
MAX_TITLE_CHARS = 200
MAX_SNIPPET_CHARS = 1_500
MAX_URL_CHARS = 2_000
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class SearchFailed(ToolError):
    message = _("The search service sent no usable response.")

    def __init__(self, message: str = "", *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResult:
    """A page that a service found."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchService:
    """A configured service; `address` is its own or, for tests and proxies, another one."""

    name: ServiceName
    address: str = ""
    key: str = field(default="", repr=False)
    policy: Egress = field(default_factory=Egress)

    @property
    def endpoint(self) -> str:
        base = (self.address or ADDRESSES[self.name]).rstrip("/")
        path = PATHS[self.name]
        return base if base.endswith(path) else f"{base}{path}"

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """Return what the service found; raise EgressRefused, EgressFailed or SearchFailed."""
        headers = {"Accept": "application/json"}
        pairs: dict[str, Any] = {"q": query}
        content = None
        if self.name == "searxng":
            pairs |= {"format": "json"}
            headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        elif self.name == "brave":
            pairs |= {"count": count}
            headers |= {"X-Subscription-Token": self.key}
        else:
            pairs = {}
            headers |= {
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
            }
            body = {"query": query, "max_results": count, "search_depth": "basic"}
            content = json.dumps(body).encode()
        url = f"{self.endpoint}?{urlencode(pairs)}" if pairs else self.endpoint
        method = "GET" if content is None else "POST"
        response = await fetch(
            method, url, policy=self.policy, headers=headers, content=content
        )
        return list(_read(self.name, response))[:count]


def _read(name: ServiceName, response: Response) -> Iterable[WebResult]:
    """Yield the results in a response, without those that lead nowhere."""
    status = response.status
    if status in (401, 403):
        # SearXNG forbids formats that its settings don't list.
        refusal = NO_JSON if name == "searxng" and status == 403 else KEY_REJECTED
        raise SearchFailed(refusal)
    if status == 429:
        raise SearchFailed(RATE_LIMITED, is_passing=True)
    if status != 200:
        sentence = _(
            "The search service returned HTTP %(status)s.", status=format_status(status)
        )
        raise SearchFailed(sentence, is_passing=status >= 500)
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        raise SearchFailed(NO_JSON if name == "searxng" else SearchFailed.message) from error
    items = _items(value, "web", "results") if name == "brave" else _items(value, "results")
    for item in items:
        url = _text(item.get("url"))
        if not url.startswith(("http://", "https://")) or len(url) > MAX_URL_CHARS:
            continue
        yield WebResult(
            title=shorten_line(_text(item.get("title")), MAX_TITLE_CHARS) or url,
            url=url,
            snippet=_first_text(item, "content", "description")[:MAX_SNIPPET_CHARS],
            published=_date(
                _first_text(item, "publishedDate", "published_date", "page_age", "age")
            ),
        )


def _items(value: Any, *names: str) -> list[Mapping[str, Any]]:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    listed = value if isinstance(value, list) else []
    return [item for item in listed[:MAX_RESULTS] if isinstance(item, dict)]


def _first_text(item: Mapping[str, Any], *names: str) -> str:
    texts = (_text(item.get(name)) for name in names)
    return next(filter(None, texts), "")


def _text(value: Any) -> str:
    """Return a text without markup, on one line."""
    if not isinstance(value, str):
        return ""
    return " ".join(unescape(_TAG.sub("", value)).split())


def _date(text: str) -> str:
    match = _DATE.match(text)
    return match[0] if match else text[:40]


KEY_REJECTED = _("The search service rejected the API key. Ask an administrator to check it.")
RATE_LIMITED = _("The search service's rate limit is reached. Try again later.")
NO_JSON = _(
    "This SearXNG server doesn't answer in JSON. Its administrator can add json to "
    "search.formats in settings.yml."
)
