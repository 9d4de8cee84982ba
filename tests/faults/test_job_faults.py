"""Dead processes and the jobs they had in hand: each row once."""

import pytest

from tests.faults import job_faults

pytestmark = pytest.mark.thorough


async def test_f44_a_run_survives_five_kills_before_its_first_step(holds):
    await holds(job_faults.f44)


async def test_f45_a_document_survives_five_kills(holds):
    await holds(job_faults.f45)


async def test_f46_an_import_survives_five_kills_and_a_deploy(holds):
    await holds(job_faults.f46)


async def test_f48_the_owner_of_an_interrupted_scheduled_call_is_notified(holds):
    await holds(job_faults.f48)


async def test_f47_a_document_that_ends_its_own_process_is_given_up_with_the_reason(holds):
    await holds(job_faults.f47)


async def test_f49_a_small_file_does_not_wait_for_another_users_hostile_files(holds):
    await holds(job_faults.f49)
