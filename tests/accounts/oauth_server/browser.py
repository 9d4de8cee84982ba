"""A user who signs in and allows what an app asks for, and what the MCP SDK needs besides."""

import html
import re
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from tests.browser.server import NAME, PASSWORD

CSRF_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
LEADS_TO = re.compile(r'http-equiv="refresh" content="0; url=([^"]+)"')


class Browser:
    """The browser of the first account; `back` is where it was sent at last."""

    def __init__(self, url: str) -> None:
        self.http = httpx2.Client(base_url=url, follow_redirects=True, timeout=60)
        self.back = ""

    async def open(self, url: str) -> None:
        page = self.http.get(url)
        if page.url.path == "/login/":
            onward = dict(parse_qsl(page.url.query.decode()))["next"]
            page = self._send(page, username=NAME, password=PASSWORD, next=onward)
        page = self._send(page, decision="allow")
        leads_to = LEADS_TO.search(page.text)
        assert leads_to, page.text
        self.back = html.unescape(leads_to[1])

    def _send(self, page: httpx2.Response, **values: str) -> httpx2.Response:
        token = CSRF_FIELD.search(page.text)
        assert token, page.text
        form = {**values, "csrfmiddlewaretoken": token[1]}
        return self.http.post(str(page.url), data=form, headers={"Referer": str(page.url)})

    @property
    def parameters(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.back).query))

    async def result(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.parameters)


class Storage:
    """What a program saves; here it forgets."""

    tokens = info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.info

    async def set_client_info(self, info):
        self.info = info
