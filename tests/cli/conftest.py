from io import StringIO

import httpx2
import pytest

from agents.access import api_keys
from agents.db import database
from agents.models import ApiKey
from project.cli.local import AppTransport
from project.cli.server import TIMEOUT, Server


class Terminal(StringIO):
    """A stream that is, or isn't, a terminal."""

    def __init__(self, is_terminal=True):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.fixture
def config_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "ashiato"


@pytest.fixture
async def server(administrator, agent, run_executor):
    """The product in this process, as its REST API, with a key for everything."""
    from project.asgi import application

    scopes = ApiKey.Scope.values
    _key, token = await database.run(api_keys.create, administrator, "CI", scopes)
    async with httpx2.AsyncClient(
        base_url="http://testserver",
        transport=AppTransport(application),
        headers={"Authorization": f"Bearer {token}"},
        timeout=TIMEOUT,
    ) as client:
        yield Server("http://testserver", client)
