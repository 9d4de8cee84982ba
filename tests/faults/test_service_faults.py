"""Tools, storage, several processes, the machine: each row once."""

import pytest

from tests.faults import machine_faults, mcp_faults, service_faults, storage_faults

pytestmark = pytest.mark.thorough


async def test_f04_runs_of_a_killed_worker_resume_in_another(holds):
    await holds(service_faults.f04)


async def test_f06_a_database_that_restarts_is_waited_for(holds):
    await holds(service_faults.f06)


async def test_f07_a_locked_database_is_waited_for(holds):
    await holds(storage_faults.f07, seconds=3)


async def test_f08_pages_catch_up_after_the_channel_layer_lost_everything(holds):
    await holds(service_faults.f08, people=10)


async def test_f10_a_crashed_mcp_server_is_restarted(holds):
    await holds(mcp_faults.f10)


async def test_f11_a_hanging_mcp_server_times_out(holds):
    await holds(mcp_faults.f11)


async def test_f12_invalid_output_of_an_mcp_server_is_handled(holds):
    await holds(mcp_faults.f12)


async def test_f29_a_clock_jump_changes_no_order(holds):
    await holds(machine_faults.f29)


async def test_f30_a_full_disk_is_reported_and_work_resumes_afterwards(holds):
    await holds(storage_faults.f30)


async def test_f31_too_many_open_files_end_no_run(holds):
    await holds(machine_faults.f31)


async def test_f32_an_older_version_is_upgraded_during_its_runs(holds):
    await holds(storage_faults.f32)


async def test_f33_a_backup_taken_under_load_is_complete(holds):
    await holds(storage_faults.f33)
