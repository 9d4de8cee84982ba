"""The kinds of ground that rows are played on."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.faults.product import EMBEDDED, Mode
from tests.faults.testbed import NotAvailable, Testbed
from tests.services import NotThere, PostgreSQL, Redis

WORKERS = 2
SECRET = "sk-not-to-be-seen-by-anybody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind: the product's environment and its services."""

    with_servers: bool = False
    is_scaled: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


KINDS = {
    "plain": Kind(),
    "served": Kind(
        with_servers=True,
        environment={
            "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            "GROQ_API_BASE": "http://no-such-host.invalid/v1",
            "GROQ_API_KEY": SECRET,
            "ASHIATO_MODEL_RETRIES": "1",
        },
    ),
    "scaled": Kind(is_scaled=True),
    "lossy": Kind(
        environment={"ASHIATO_TOOLS": "tests.faults.tools,tests.faults.lossy_pubsub"}
    ),
    "crowded": Kind(
        environment={"ASHIATO_TOOLS": "tests.faults.tools,tests.faults.short_queue"}
    ),
    # A twentieth of the usual values.
    "hasty": Kind(
        environment={
            "ASHIATO_MODEL_SLOW_SECONDS": "0.5",
            "ASHIATO_MODEL_FIRST_SECONDS": "3",
            "ASHIATO_MODEL_BETWEEN_SECONDS": "1.5",
            "ASHIATO_MODEL_WHOLE_SECONDS": "6",
        }
    ),
}


class Services:
    """PostgreSQL and Redis, which can be stopped and restarted."""

    def __init__(self, folder: Path) -> None:
        try:
            self.database, self.layer = PostgreSQL(folder / "database"), Redis(folder / "layer")
        except NotThere as error:
            raise NotAvailable(str(error)) from error

    def __enter__(self) -> Self:
        self.database.start()
        self.layer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.layer.stop()
        self.database.stop()

    @property
    def mode(self) -> Mode:
        environment = {
            # Commits must survive a kill, although the tests' own server doesn't sync.
            "ASHIATO_DATABASE_URL": f"{self.database.url}&options=-csynchronous_commit%3Don",
            "ASHIATO_REDIS_URL": self.layer.url,
            "ASHIATO_SECRET_KEY": "for-faults-only",
            "ASHIATO_WORKERS": "true",
        }
        return Mode(name="scaled", environment=environment, workers=WORKERS)


@contextmanager
def open_testbed(
    kind: str, folder: Path, prepared_data: Path | None = None, **size: int
) -> Iterator[Testbed]:
    """Open a ground of this kind, with its services."""
    sort = KINDS[kind]
    with ExitStack() as stack:
        services = stack.enter_context(Services(folder)) if sort.is_scaled else None
        mode = services.mode if services else EMBEDDED
        if prepared_data and not services:
            shutil.copytree(prepared_data, folder / "ground" / "data")
        options = {**size, "mode": mode, "with_servers": sort.with_servers, **sort.environment}
        testbed = stack.enter_context(Testbed(folder / "ground", **options))
        testbed.services = services
        yield testbed
