"""Much content, and many pages: each row once."""

import pytest

from tests.faults import load_faults

pytestmark = pytest.mark.thorough


async def test_f37_a_very_long_answer_is_truncated_and_its_page_stays_connected(holds):
    await holds(load_faults.f37)


async def test_f38_a_page_that_missed_many_events_catches_up(holds):
    await holds(load_faults.f38)


async def test_f39_the_sockets_of_one_user_do_not_block_others(holds):
    await holds(load_faults.f39)


async def test_f40_pages_that_cannot_be_served_yet_try_again(holds):
    await holds(load_faults.f40)


async def test_f41_large_requests_cost_neither_memory_nor_time(holds):
    await holds(load_faults.f41)
