"""The rows of the compatibility table that need nothing but the product."""

import pytest

from tests.compat import checks
from tests.compat.rows import ROWS

SHORT = [row for row in ROWS if row.is_short]


@pytest.mark.parametrize("row", SHORT, ids=lambda row: f"{row.area}: {row.name}")
async def test_all_short_compatibility_checks_pass(row):
    assert await row.check()


def test_every_area_has_rows():
    areas = {row.area for row in ROWS}

    assert areas == checks.AREAS
