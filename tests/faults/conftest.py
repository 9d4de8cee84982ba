from contextlib import ExitStack

import pytest

from tests.faults.ground import Untold
from tests.faults.kinds import opened
from tests.faults.rows import ROWS


@pytest.fixture(scope="session")
def grounds(tmp_path_factory):
    """A ground of each kind, opened when a row first needs it."""
    with ExitStack() as stack:
        kept = {}

        def ground(kind):
            if kind not in kept:
                folder = tmp_path_factory.mktemp(kind)
                kept[kind] = stack.enter_context(opened(kind, folder, chats=40))
            return kept[kind]

        yield ground


@pytest.fixture
def holds(grounds):
    """Plays a row of the table, and finds nothing that breaks a promise."""

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
