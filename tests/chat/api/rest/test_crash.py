"""A server that is killed in the middle of a run: its client continues and misses nothing."""

import asyncio
from http import HTTPStatus

import aiohttp
import pytest

from tests import wire
from tests.faults.product import Product

RECOVERS_SECONDS = 120
WORDS = " ".join(f"word{number}" for number in range(40))
MAKE_KEY = """
from django.contrib.auth.models import User
from agents.access import api_keys
user = User.objects.create_user("ci")
print(api_keys.create(user, "CI", ["ask", "read"])[1])
"""


@pytest.mark.thorough
async def test_a_client_continues_after_a_crash(tmp_path):
    def reply(request):
        return wire.say(WORDS, chunks=40, delay=0.1)

    async with wire.WireServer(reply) as model:
        product = Product(tmp_path, model.url, ASHIATO_GENERATED_TITLES="false")
        try:
            await asyncio.to_thread(product.run, "manage.py", "setup")
            printed = await asyncio.to_thread(product.run, "manage.py", "shell", "-c", MAKE_KEY)
            headers = {"Authorization": f"Bearer {printed.split()[-1]}"}
            await asyncio.to_thread(product.start)
            async with aiohttp.ClientSession(f"{product.url}/api/v1/", headers=headers) as api:
                async with api.post("runs", json={"text": "Count."}) as response:
                    assert response.status == HTTPStatus.CREATED
                    run = (await response.json())["id"]
                seqs = await follow(api, run, 0, most=12)
                await asyncio.to_thread(product.kill)
                await asyncio.to_thread(product.start)
                async with asyncio.timeout(RECOVERS_SECONDS):
                    seqs += await follow(api, run, seqs[-1])
                async with api.get(f"runs/{run}") as response:
                    ended = await response.json()
        finally:
            await asyncio.to_thread(product.end)

    assert ended["status"] == "completed"
    assert ended["answer"] == WORDS
    assert seqs == list(range(1, len(seqs) + 1))


async def follow(api, run, after, most=None):
    """Return the numbers of the events after this one: to the end, or so many."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    seqs = []
    async with api.get(f"runs/{run}/events", headers=headers) as response:
        assert response.status == HTTPStatus.OK
        async for line in response.content:
            if line.startswith(b"id: "):
                seqs.append(int(line[4:]))
            if most is not None and len(seqs) >= most:
                break
    return seqs
