"""The tests' environment: the demo model at full speed, and a temporary data folder.

Loaded with `-p`, because pytest-django reads the settings before any conftest. With
`TESTS_ON=services` the tests use a real PostgreSQL and a real Redis.
"""

import atexit
import gc
import os
import shutil
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import certifi
import pytest

from tests.scheduling import MixedScheduling
from tests.services import PostgreSQL, Redis

ON_SERVICES = os.environ.get("TESTS_ON") == "services"

# Thousands of tests are collected and stay to the end. Searching them for garbage again and
# again takes a third of the collection's time, so it is off until they are there.
gc.disable()

_folder = tempfile.mkdtemp(prefix="ashiato-test-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith("ASHIATO_")]:
    del os.environ[_name]
os.environ |= {
    "ASHIATO_DATA": _folder,
    "ASHIATO_MODEL": "demo",
    "ASHIATO_DEMO_DELAY": "0",
    "ASHIATO_EMBEDDING_MODEL": "demo",
    "ASHIATO_MODEL_RETRIES": "0",
    "ASHIATO_ORIGINS": "http://testserver",
    "ASHIATO_SECRET_KEY": "for-tests-only",
}


def _small_bundle(folder: Path) -> str:
    """Return a file with one certificate authority: loading all takes 50 ms each time."""
    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text().partition(end)[0]
    file = folder / "authorities.pem"
    file.write_text(first + end)
    return str(file)


# No test uses the internet, so any authority works, also for the servers they start.
os.environ["SSL_CERT_FILE"] = _small_bundle(Path(_folder))


def _start(service: PostgreSQL | Redis) -> str:
    service.start()
    atexit.register(service.stop)
    return service.url


if ON_SERVICES:
    # Not in the data folder, which PostgreSQL's user can't read.
    _services = Path(tempfile.mkdtemp(prefix="ashiato-test-services-"))
    atexit.register(shutil.rmtree, _services, ignore_errors=True)
    # All workers share the database server of their parent process.
    if "TESTS_POSTGRESQL" not in os.environ:
        os.environ["TESTS_POSTGRESQL"] = _start(PostgreSQL(_services / "postgresql"))
    os.environ["ASHIATO_DATABASE_URL"] = os.environ["TESTS_POSTGRESQL"]
    # Redis starts quickly, and its messages must stay within a worker.
    os.environ["ASHIATO_REDIS_URL"] = _start(Redis(_services / "redis"))


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config) -> int:
    """Use one worker more than cores, because many tests wait for processes."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session) -> None:
    """Import a share of the test files first.

    In a new checkout, each worker compiles its share for all of them.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not session.config.ArgsSource.TESTPATHS:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    ignored = [Path(path).resolve() for path in session.config.getoption("ignore")]
    files = sorted(Path("tests").resolve().rglob("test_*.py"))
    ours = [file for file in files if not any(file.is_relative_to(path) for path in ignored)]
    for file in ours[number::count]:
        with suppress(Exception):  # the collection says what is wrong
            import_module(".".join(file.relative_to(Path.cwd()).with_suffix("").parts))


def pytest_collection_finish(session) -> None:
    """Freeze collected objects, so later garbage collections skip them."""
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config, log) -> MixedScheduling | None:
    return MixedScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config, items) -> None:
    """Deselect tests without database access, which needn't run on both databases."""
    if not ON_SERVICES:
        return
    config.hook.pytest_deselected(items=[item for item in items if not _touches_rows(item)])
    items[:] = [item for item in items if _touches_rows(item)]


def _touches_rows(item) -> bool:
    rows = {"db", "transactional_db", "django_db_setup"}
    fixtures = rows & set(getattr(item, "fixturenames", ()))
    return bool(fixtures) or item.get_closest_marker("django_db") is not None
