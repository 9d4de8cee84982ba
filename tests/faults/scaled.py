"""F04, F06, F08: several processes, PostgreSQL and Redis, and each of them taken away."""

import asyncio
import random
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from tests.faults.ground import Ground, Result, Untold
from tests.faults.product import Mode
from tests.faults.rows import row, story, unless
from tests.services import NotThere, PostgreSQL, Redis

WORKERS = 2
RECOVERS = 30


class Services:
    """The database and the layer of one ground; both may go away and come back."""

    def __init__(self, folder: Path) -> None:
        try:
            self.database, self.layer = PostgreSQL(folder / "database"), Redis(folder / "layer")
        except NotThere as error:
            raise Untold(str(error)) from error

    @property
    def mode(self) -> Mode:
        environment = {
            "ASHIATO_DATABASE_URL": self.database.url,
            "ASHIATO_REDIS_URL": self.layer.url,
            "ASHIATO_SECRET_KEY": "for-faults-only",
            "ASHIATO_WORKERS": "true",
        }
        return Mode(name="scaled", environment=environment, workers=WORKERS)


@asynccontextmanager
async def scaled_ground(chats: int = 60) -> AsyncIterator[tuple[Ground, Services]]:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="ashiato-faults-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        services = await asyncio.to_thread(Services, folder)
        for service in (services.database, services.layer):
            await asyncio.to_thread(service.start)
            stack.callback(service.stop)
        ground = Ground(folder / "ground", mode=services.mode, chats=chats)
        stack.enter_context(ground)
        async with ground:
            yield ground, services


async def _busy(ground: Ground, people: int) -> None:
    for number, tab in enumerate(await ground.tabs(people)):
        await tab.say(story(number))


@row("F04", "a worker is killed, the web and another worker stay", times=5)
async def f04(ground: Ground, times: int) -> Result:
    """Its runs go on in the other at the first unrecorded step."""
    result = Result()
    async with scaled_ground() as (scaled, _services):
        for number in range(times):
            await _busy(scaled, 10)
            await asyncio.sleep(random.uniform(0.3, 1.5))
            await asyncio.to_thread(scaled.product.replace, 1 + number % WORKERS)
            result.add(await scaled.played(RECOVERS))
    return result


@row("F06", "PostgreSQL restarts while runs are going on", times=5)
async def f06(ground: Ground, times: int) -> Result:
    """Away for up to five seconds: everything waits, and nobody is shown an error."""
    result = Result()
    async with scaled_ground() as (scaled, services):
        for number in range(times):
            await _busy(scaled, 10)
            await asyncio.sleep(random.uniform(0.3, 1.2))
            sign = signal.SIGINT if number % 2 else signal.SIGQUIT
            await asyncio.to_thread(services.database.stop, sign)
            await asyncio.sleep(random.uniform(0, 5))
            await asyncio.to_thread(services.database.start)
            shown = " ".join(tab.text for tab in scaled.open_tabs)
            found = await scaled.played(RECOVERS)
            red = [words for words in ("went wrong", "could not go on") if words in shown]
            found.violations += unless(not red, f"{red} on the page")
            result.add(found)
    return result


@row("F08", "Redis restarts during twenty streams, and forgets everything", times=2)
async def f08(ground: Ground, times: int) -> Result:
    """Pages look for themselves, and catch up from the database."""
    result = Result()
    async with scaled_ground() as (scaled, services):
        for _ in range(times):
            await _busy(scaled, 20)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(services.layer.stop, signal.SIGKILL)
            await asyncio.sleep(random.uniform(0, 2))
            await asyncio.to_thread(services.layer.start)
            result.add(await scaled.played(RECOVERS))
    return result
