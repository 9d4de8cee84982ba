"""Pages and their users: each row once."""

import pytest

from tests.faults import page_faults

# tests/chat and the browser tests check the same with less; here the whole product runs.
pytestmark = pytest.mark.thorough


async def test_f09_lost_notifications_change_nothing(holds):
    await holds(page_faults.f09, 5)


async def test_f22_stop_works_wherever_a_run_is(holds):
    await holds(page_faults.f22)


async def test_f23_a_run_is_either_stopped_or_completed(holds):
    await holds(page_faults.f23, 10)


async def test_f24_a_reconnected_page_shows_everything_once(holds):
    await holds(page_faults.f24, 3)


async def test_f25_two_tabs_show_the_same_chat(holds):
    await holds(page_faults.f25)


async def test_f26_a_page_that_never_reads_does_not_affect_others(holds):
    await holds(page_faults.f26)


async def test_f27_a_message_sent_many_times_is_saved_once(holds):
    await holds(page_faults.f27, 2)


async def test_f28_a_message_during_a_run_is_never_a_second_run(holds):
    await holds(page_faults.f28, 2)


async def test_f34_an_approval_waits_a_day_for_its_approver(holds):
    await holds(page_faults.f34)
