"""The tests' own world: the demo model at full speed, and a folder that goes with them.

Loaded with `-p`, because pytest-django reads the settings before any conftest. With
`TESTS_ON=services` rows are kept by PostgreSQL and pages are told by Redis, both real.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.services import PostgreSQL, Redis
from tests.shares import Mixed

ON_SERVICES = os.environ.get("TESTS_ON") == "services"

_folder = tempfile.mkdtemp(prefix="ashiato-test-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith("ASHIATO_")]:
    del os.environ[_name]
os.environ |= {
    "ASHIATO_DATA": _folder,
    "ASHIATO_MODEL": "demo",
    "ASHIATO_DEMO_DELAY": "0",
    "ASHIATO_MODEL_RETRIES": "0",
    "ASHIATO_ORIGINS": "http://testserver",
    "ASHIATO_SECRET_KEY": "for-tests-only",
}


def _start_services(folder: Path) -> None:
    database, layer = PostgreSQL(folder / "postgresql"), Redis(folder / "redis")
    for service in (database, layer):
        service.start()
        atexit.register(service.stop)
    os.environ["ASHIATO_DATABASE_URL"] = database.url
    os.environ["ASHIATO_REDIS_URL"] = layer.url


if ON_SERVICES:
    # Beside the data folder, which is closed to the user that the database runs as.
    _beside = tempfile.mkdtemp(prefix="ashiato-test-services-")
    atexit.register(shutil.rmtree, _beside, ignore_errors=True)
    _start_services(Path(_beside))


def pytest_configure(config) -> None:
    """A server that goes with the tests need not be cleared of their database."""
    config.option.reuse_db |= ON_SERVICES


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config) -> int:
    """One more than there are cores: many a test waits for processes of its own."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config, log) -> Mixed | None:
    return Mixed(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config, items) -> None:
    """What touches no row is the same wherever they are kept, and need not be tried twice."""
    if not ON_SERVICES:
        return
    config.hook.pytest_deselected(items=[item for item in items if not _touches_rows(item)])
    items[:] = [item for item in items if _touches_rows(item)]


def _touches_rows(item) -> bool:
    fixtures = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    return bool(fixtures) or item.get_closest_marker("django_db") is not None
