from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from tests import first_start
from tests.faults.ground import Untold
from tests.faults.kinds import open_ground
from tests.faults.product import Product
from tests.faults.rows import ROWS


@pytest.fixture(scope="session")
def furnished(tmp_path_factory, testrun_uid):
    place = tmp_path_factory.getbasetemp().parent / f"faults-{testrun_uid}"
    return first_start.create_once(
        place, lambda place: Product(place, "").run("manage.py", "setup")
    )


@pytest.fixture(scope="session")
def grounds(furnished):
    """Open a ground of each kind when a row first needs it.

    Not in pytest's own folder, which each new pytest closes to others, such as PostgreSQL.
    """
    with ExitStack() as stack:
        kept = {}
        place = stack.enter_context(TemporaryDirectory(prefix="ashiato-faults-"))

        def ground(kind):
            if kind not in kept:
                # A failed one has left its own.
                folder = Path(mkdtemp(prefix=f"{kind}-", dir=place)) / kind
                kept[kind] = stack.enter_context(open_ground(kind, folder, furnished, chats=40))
            return kept[kind]

        yield ground


@pytest.fixture
def holds(grounds):
    """Play a row of the table, and expect no violations."""

    async def play(row, times=1, **size):
        kind = next(known.kind for known in ROWS.values() if known.play is row)
        try:
            async with grounds(kind) as ground:
                result = await row(ground, times, **size)
        except Untold as reason:
            pytest.skip(str(reason))
        assert result.histories
        assert result.violations == []

    return play
