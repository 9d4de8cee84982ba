"""MCP servers for the tests of their connections."""

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.engine.call_context import CallContext
from agents.tools.mcp.configuration.config import Folder, Sandbox, ServerConfig
from agents.tools.mcp.connection.connection import Connection

SERVERS = Path(__file__).with_name("mcp_servers")
# Without a PID namespace, so that a test can find the server's processes.
SEEN_FROM_HERE = Sandbox(levels=("landlock", "user"))


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


@pytest.fixture
def plain(notes):
    """Return a function that configures the hand-written server."""
    script = str(SERVERS / "plain.py")

    def configured(*modes, **more):
        args = (script, str(notes), *modes)
        given = {"folders": (Folder(str(notes.parent), True),), "sandbox": SEEN_FROM_HERE}
        return ServerConfig(name="plain", command=sys.executable, args=args, **given | more)

    return configured


@asynccontextmanager
async def connect(config, **options):
    connection = Connection(config, **options)
    try:
        yield connection
    finally:
        await connection.close()


async def until(condition, seconds=15):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a process sends no event
            await asyncio.sleep(0.02)


def read_notes(notes):
    return notes.read_text().split() if notes.exists() else []


class Call(CallContext):
    """A call context that records reports and questions, and gives the configured answers."""

    def __init__(self, user_id="1", chat_id="1", answer=None, reply=None):
        self.user_id, self.chat_id = user_id, chat_id
        self.progress, self.questions, self.requests = [], [], []
        self.extended = 0
        self._answer, self._reply = answer, reply

    def report_progress(self, progress, total=None, message=""):
        self.progress.append((progress, total, message))

    def extend_timeout(self):
        self.extended += 1

    async def ask(self, question):
        self.questions.append(question)
        return await self._answer(question) if self._answer else await super().ask(question)

    async def sample(self, request):
        self.requests.append(request)
        return self._reply if self._reply else await super().sample(request)
