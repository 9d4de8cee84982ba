import pytest
from django.test import AsyncClient

from tests.runs.conftest import use_tool  # noqa: F401  (a fixture)

ALL_SCOPES = ("ask", "read", "read_all", "approve", "configure")


class KeyClient(AsyncClient):
    """Sends a key with every request."""

    def __init__(self, token):
        super().__init__()
        self.token = token

    def generic(self, *arguments, headers=None, **options):
        headers = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        return super().generic(*arguments, headers=headers, **options)


class Program:
    """A program with a key."""

    def __init__(self, key, token):
        self.key = key
        self.token = token
        self.client = KeyClient(token)

    async def call(self, method, path, data=None, **headers):
        """Call an operation; `_` stands for `-` in names of headers."""
        options = {"headers": {name.replace("_", "-"): text for name, text in headers.items()}}
        if data is not None:
            options |= {"data": data, "content_type": "application/json"}
        return await getattr(self.client, method.lower())(f"/api/v1{path}", **options)

    async def get(self, path, **headers):
        return await self.call("get", path, **headers)

    async def post(self, path, data=None, **headers):
        return await self.call("post", path, data, **headers)


@pytest.fixture
def connect(person):
    """Make a program with these scopes, all by default."""
    from agents.access import api_keys
    from agents.db import database

    async def make(*scopes, user=person, **columns):
        made = await database.run(api_keys.create, user, "CI", scopes or ALL_SCOPES, **columns)
        return Program(*made)

    return make


@pytest.fixture
async def program(connect):
    return await connect()


async def finished(program, run):
    """Wait for a run by the API; return it as it is then."""
    for _ in range(10):
        answer = (await program.get(f"/runs/{run}/wait?seconds=10")).json()
        if answer["status"] != "running":
            return answer
    raise AssertionError(answer)


async def body_of(response):
    """Return the whole content of a response."""
    if not response.streaming:
        return response.content
    pieces = response.streaming_content
    if response.is_async:
        return b"".join([piece async for piece in pieces])
    return b"".join(pieces)


async def sse_events(response):
    """Return the numbers and types of the events of a stream, to its end."""
    text = ""
    async for piece in response.streaming_content:
        text += piece.decode()
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if fields:
            found.append((int(fields["id"]), fields["event"]))
    return found
