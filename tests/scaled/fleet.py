"""Several processes as one product: web processes and workers on PostgreSQL and Redis."""

import asyncio
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from aiohttp import ClientConnectionError

from tests import wire
from tests.bench.processes import free_port, wait_for_page
from tests.faults.page import Node
from tests.faults.product import Mode, Product
from tests.faults.tab import COMES_BACK, Tab
from tests.faults.testbed import Testbed
from tests.services import PostgreSQL, Redis

LOADS_WITHIN = 10
STARTS_WITHIN = 60


class Fleet(Product):
    """A product whose processes can be killed; its web processes share one name."""

    def __init__(self, folder: Path, model_url: str, mode: Mode, webs: int = 2) -> None:
        super().__init__(folder, model_url, mode)
        self.ports = [self.port, *(free_port() for _ in range(webs - 1))]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.environment["ASHIATO_ORIGINS"] = ",".join(self.urls)

    @property
    def webs(self) -> list[subprocess.Popen]:
        return self.processes[: len(self.ports)]

    @property
    def workers(self) -> list[subprocess.Popen]:
        return self.processes[len(self.ports) :]

    def start(self, fault: str = "", files: int = 0) -> None:
        """Start, and wait until every page is served and every worker is ready."""
        self.run("manage.py", "setup")
        ready = self.ready_workers
        webs = [self._begun("serve", {"PORT": str(port)}, None) for port in self.ports]
        workers = [self._begun("worker", {}, None) for _ in range(self.mode.workers)]
        self.processes = webs + workers
        for web, url in zip(webs, self.urls, strict=True):
            wait_for_page(f"{url}/login/", web, self.log)
        self.wait_for_workers(ready + len(workers))

    @property
    def ready_workers(self) -> int:
        """The number of workers started so far."""
        return self.output.count("concurrent runs)") if self.log.exists() else 0

    def wait_for_workers(self, count: int) -> None:
        end = time.monotonic() + STARTS_WITHIN
        while self.ready_workers < count:
            if time.monotonic() > end or any(worker.poll() for worker in self.workers):
                raise RuntimeError(f"The workers did not start:\n{self.output[-2000:]}")
            time.sleep(0.05)

    def restart(self) -> None:
        """Kill and restart everything."""
        self.kill()
        self.start()


class Roaming(Tab):
    """A tab that moves to the next web process when one is gone, like a load balancer."""

    urls: list[str]

    async def loaded(self) -> Node:
        """Load the page from any available process; the socket does the same."""
        async with asyncio.timeout(LOADS_WITHIN):
            while True:
                try:
                    return await super().loaded()
                except ClientConnectionError:
                    self._move_on()
                    await asyncio.sleep(random.uniform(0, COMES_BACK))

    async def _connected(self) -> None:
        try:
            await super()._connected()
        finally:
            self._move_on()

    def _move_on(self) -> None:
        self.url = self.urls[(self.urls.index(self.url) + 1) % len(self.urls)]


class FleetTestbed(Testbed):
    """A ground for many processes; `people` are spread over the web processes."""

    product: Fleet

    def __enter__(self) -> Self:
        self.wire = self._stack.enter_context(wire.serve_in_thread(self.model))
        services = self._stack.enter_context(services_in(self.folder))
        self.product = Fleet(self.folder, self.wire.url, services)
        self._stack.callback(self.product.end)
        self.product.start()
        self.people = self.product.set_up(*self._size)
        return self

    def _fresh(self) -> Tab:
        person = max(self.people, key=lambda person: len(person["chats"]))
        urls = self.product.urls
        tab = Roaming(self.client, random.choice(urls), person, person["chats"].pop())
        tab.urls = urls
        return tab


@contextmanager
def services_in(folder: Path, workers: int = 2) -> Iterator[Mode]:
    """Start PostgreSQL and Redis; yield the product's mode for them."""
    with start_services(PostgreSQL(folder / "postgresql"), Redis(folder / "redis")) as services:
        yield scaled_mode(*services, workers=workers)


@contextmanager
def start_services(*services: PostgreSQL | Redis) -> Iterator[tuple[PostgreSQL | Redis, ...]]:
    with ExitStack() as stack:
        for service in services:
            stack.callback(service.stop)
            service.start()
        yield services


def scaled_mode(database: PostgreSQL, layer: Redis, workers: int) -> Mode:
    environment = {
        "ASHIATO_DATABASE_URL": database.url,
        "ASHIATO_REDIS_URL": layer.url,
        "ASHIATO_SECRET_KEY": "the same for all",
        "ASHIATO_WORKERS": "true",
    }
    return Mode(name="scaled", environment=environment, workers=workers)
