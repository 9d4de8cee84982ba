"""Whether this process can do its work, for balancers and whoever else asks from outside.

It is asked before anything else is: balancers know no password and call us by any name.
"""

import asyncio
import json
import logging
import shutil
from concurrent.futures import Future, ThreadPoolExecutor

from django.conf import settings
from django.db import Error, connection

from agents import live
from agents.models import ServerProcess

logger = logging.getLogger(__name__)

DEADLINE = 2.0
LEAST_SPACE = 500_000_000
HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


async def answer(scope, receive, send) -> None:
    """200 while pages can be served, though something may be degraded; 503 otherwise.

    Without the layer pages follow a few seconds late, and a full disk can still be read.
    """
    is_down = not await database.is_there()
    trouble = ["database"] if is_down else await _troubles()
    status = "down" if is_down else "degraded" if trouble else "ok"
    body = {"status": status} | ({"trouble": trouble} if trouble else {})
    start = {"type": "http.response.start", "status": 503 if is_down else 200}
    await send({**start, "headers": HEADERS})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def _troubles() -> list[str]:
    layer = [] if await layer_delay() is not None else ["layer"]
    return layer + (["disk"] if space_left() < LEAST_SPACE else [])


async def layer_delay() -> float | None:
    """Seconds until the channel layer answers; None where it does not."""
    try:
        return await live.ping()
    except Exception as error:  # each layer fails in its own way
        logger.info("The channel layer does not answer: %r", error)
        return None


def space_left() -> int:
    """Bytes left where our data lives."""
    return shutil.disk_usage(settings.DATA_DIR).free


class _Database:
    """Asked in a thread of its own, so that one which hangs holds up nothing else.

    One question at a time: whoever comes meanwhile waits for the same answer.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._asked: Future[bool] | None = None

    async def is_there(self) -> bool:
        if self._asked is None or self._asked.done():
            self._asked = self._thread.submit(_can_be_read)
        answered, _ = await asyncio.wait([asyncio.wrap_future(self._asked)], timeout=DEADLINE)
        return any(each.result() for each in answered)


def _can_be_read() -> bool:
    try:
        ServerProcess.objects.exists()
    except Error as error:
        logger.info("The database does not answer: %r", error)
        return False
    finally:
        connection.close()
    return True


database = _Database()
