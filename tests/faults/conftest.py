from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from tests import first_start
from tests.faults.product import Product
from tests.faults.testbed_kinds import open_testbed


@pytest.fixture(scope="session")
def prepared_data(tmp_path_factory, testrun_uid):
    place = tmp_path_factory.getbasetemp().parent / f"faults-{testrun_uid}"
    return first_start.create_once(
        place, lambda place: Product(place, "").run("manage.py", "setup")
    )


@pytest.fixture(scope="session")
def testbeds(prepared_data):
    """Open a ground of each kind when a row first needs it.

    Not in pytest's own folder, which each new pytest closes to others, such as PostgreSQL.
    """
    with ExitStack() as stack:
        kept = {}
        place = stack.enter_context(TemporaryDirectory(prefix="ashiato-faults-"))

        def testbed(kind):
            if kind not in kept:
                # A failed one has left its own.
                folder = Path(mkdtemp(prefix=f"{kind}-", dir=place)) / kind
                kept[kind] = stack.enter_context(
                    open_testbed(kind, folder, prepared_data, chats=40)
                )
            return kept[kind]

        yield testbed
