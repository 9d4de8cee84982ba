"""The table of faults, each row once: `make faults` plays them all, and often."""

import pytest

from tests.faults import asking, killing, machine, scaled, serving, storing, watching


@pytest.mark.parametrize("point", ["P1", "P12"])
async def test_f01_runs_go_on_after_a_kill_at_a_point(holds, point):
    await holds(killing.f01, 2, points=[point])


async def test_f02_runs_go_on_after_a_kill_at_any_time(holds):
    await holds(killing.f02, people=10)


async def test_f03_runs_end_or_are_handed_over_when_the_server_is_told_to_go(holds):
    await holds(killing.f03)


async def test_f04_the_runs_of_a_worker_that_was_killed_go_on_in_another(holds):
    await holds(scaled.f04)


async def test_f05_what_may_have_been_done_is_asked_about_and_never_repeated(holds):
    await holds(killing.f05)


async def test_f06_a_database_that_restarts_is_waited_for(holds):
    await holds(scaled.f06)


async def test_f07_a_locked_database_is_waited_for(holds):
    await holds(storing.f07, seconds=3)


async def test_f08_pages_catch_up_after_the_layer_has_forgotten_everything(holds):
    await holds(scaled.f08, people=10)


async def test_f09_lost_notices_do_no_harm(holds):
    await holds(watching.f09, 5)


async def test_f10_a_tool_server_that_dies_is_started_again(holds):
    await holds(serving.f10)


async def test_f11_a_tool_server_that_never_answers_is_given_up(holds):
    await holds(serving.f11)


async def test_f12_a_tool_server_may_say_what_it_likes(holds):
    await holds(serving.f12)


async def test_f13_a_stream_that_is_cut_keeps_what_was_said(holds):
    await holds(asking.f13)


async def test_f14_a_model_that_does_not_begin_is_said_to_be_slow_and_given_up(holds):
    await holds(asking.f14)


async def test_f15_a_model_that_falls_silent_is_given_up(holds):
    await holds(asking.f15)


async def test_f16_a_model_that_drips_for_ever_is_ended(holds):
    await holds(asking.f16)


async def test_f17_garbage_of_a_model_ends_in_words_or_is_mended(holds):
    await holds(asking.f17)


async def test_f17b_an_answer_in_many_pieces_comes_whole(holds):
    await holds(asking.f17b)


async def test_f18_an_empty_answer_is_said_to_be_empty(holds):
    await holds(asking.f18)


async def test_f19_a_storm_of_refusals_is_waited_out_and_then_ended(holds):
    await holds(asking.f19, 5)


async def test_f20_a_provider_that_cannot_be_reached_is_named(holds):
    await holds(asking.f20)


async def test_f21_a_conversation_that_is_too_long_is_said_to_be(holds):
    await holds(asking.f21)


async def test_f22_stop_works_wherever_a_run_is(holds):
    await holds(watching.f22)


async def test_f23_stop_and_the_end_are_never_both(holds):
    await holds(watching.f23, 10)


async def test_f24_a_page_that_comes_back_shows_all_of_it_once(holds):
    await holds(watching.f24, 3)


async def test_f25_two_tabs_are_one_conversation(holds):
    await holds(watching.f25)


async def test_f26_a_page_that_never_reads_harms_nobody(holds):
    await holds(watching.f26)


async def test_f27_a_message_sent_many_times_is_one(holds):
    await holds(watching.f27, 2)


async def test_f28_a_message_during_a_run_is_never_a_second_run(holds):
    await holds(watching.f28, 2)


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


async def test_f34_an_approval_waits_for_a_day_and_for_who_may_give_it(holds):
    await holds(watching.f34)


@pytest.mark.parametrize("point", ["P9", "P12"])
async def test_f35_plans_go_on_after_a_kill_at_a_point(holds, point):
    await holds(killing.f35, 2, points=[point])
