"""A program with a key, and OpenAI's own client against this process."""

import httpx
import pytest
from openai import AsyncOpenAI

from agents.access import api_keys
from agents.db import database

BASE_URL = "http://testserver/v1"


@pytest.fixture
def make_key(person):
    def make(*scopes, user=person, **columns):
        return api_keys.create(user, "CI", scopes or ("ask",), **columns)

    return make


@pytest.fixture
async def http():
    """Send requests to the application, without a server."""
    from project.asgi import application

    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        yield client


@pytest.fixture
async def client(make_key, http, agent, run_executor):
    """OpenAI's client with a key that can ask."""
    _key, token = await database.run(make_key)
    return AsyncOpenAI(api_key=token, base_url=BASE_URL, http_client=http, max_retries=0)


@pytest.fixture
async def deciding_client(make_key, http, agent, run_executor):
    """One whose key can also decide about approvals."""
    _key, token = await database.run(make_key, "ask", "approve", "read")
    return AsyncOpenAI(api_key=token, base_url=BASE_URL, http_client=http, max_retries=0)
