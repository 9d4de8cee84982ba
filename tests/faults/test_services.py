"""Tools, storage, several processes, the machine: each row once."""

import pytest

from tests.faults import machine, scaled, serving, storing

pytestmark = pytest.mark.thorough


async def test_f04_the_runs_of_a_worker_that_was_killed_go_on_in_another(holds):
    await holds(scaled.f04)


async def test_f06_a_database_that_restarts_is_waited_for(holds):
    await holds(scaled.f06)


async def test_f07_a_locked_database_is_waited_for(holds):
    await holds(storing.f07, seconds=3)


async def test_f08_pages_catch_up_after_the_layer_has_forgotten_everything(holds):
    await holds(scaled.f08, people=10)


async def test_f10_a_tool_server_that_dies_is_started_again(holds):
    await holds(serving.f10)


async def test_f11_a_tool_server_that_never_answers_is_given_up(holds):
    await holds(serving.f11)


async def test_f12_a_tool_server_may_say_what_it_likes(holds):
    await holds(serving.f12)


async def test_f29_a_clock_that_jumps_turns_nothing_round(holds):
    await holds(machine.f29)


async def test_f30_a_full_disk_is_said_to_be_full_and_all_goes_on_when_it_is_not(holds):
    await holds(storing.f30)


async def test_f31_too_many_open_files_end_no_run(holds):
    await holds(machine.f31)


async def test_f32_an_older_version_is_upgraded_in_the_middle_of_its_runs(holds):
    await holds(storing.f32)


async def test_f33_a_copy_taken_under_load_is_whole(holds):
    await holds(storing.f33)
