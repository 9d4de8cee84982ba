"""Crashes and shutdowns of the server: each row once."""

import pytest

from tests.faults import kill_faults


@pytest.mark.thorough
@pytest.mark.parametrize("point", ["before_message_save", "before_resume"])
async def test_f01_runs_resume_after_a_kill_at_a_fault_point(holds, point):
    await holds(kill_faults.f01, 2, points=[point])


@pytest.mark.thorough
async def test_f02_runs_resume_after_a_kill_at_any_time(holds):
    await holds(kill_faults.f02, people=10)


@pytest.mark.thorough
async def test_f03_runs_end_or_are_handed_over_at_shutdown(holds):
    await holds(kill_faults.f03)


@pytest.mark.thorough
async def test_f05_an_uncertain_call_needs_a_decision_and_is_never_repeated(holds):
    await holds(kill_faults.f05)


@pytest.mark.thorough
@pytest.mark.parametrize("point", ["after_tool_call", "before_resume"])
async def test_f35_plans_resume_after_a_kill_at_a_fault_point(holds, point):
    await holds(kill_faults.f35, 2, points=[point])


@pytest.mark.thorough
async def test_f36_a_run_with_progress_survives_any_number_of_restarts(holds):
    await holds(kill_faults.f36)
