"""Misbehaving models: each row once."""

import pytest

from tests.faults import model_faults

# The engine and the models have tests of the same; here they go through the whole product.
pytestmark = pytest.mark.thorough


async def test_f13_a_cut_stream_keeps_its_text(holds):
    await holds(model_faults.f13)


async def test_f14_a_model_that_does_not_start_is_reported_slow_and_times_out(holds):
    await holds(model_faults.f14)


async def test_f14b_a_model_that_reads_its_prompt_is_waited_for(holds):
    await holds(model_faults.f14b)


async def test_f15_a_model_that_stalls_times_out(holds):
    await holds(model_faults.f15)


async def test_f16_a_model_that_drips_forever_is_ended(holds):
    await holds(model_faults.f16)


async def test_f17_garbage_from_a_model_is_an_error_or_repaired(holds):
    await holds(model_faults.f17)


async def test_f17b_an_answer_in_many_chunks_is_complete(holds):
    await holds(model_faults.f17b)


async def test_f18_an_empty_answer_is_reported(holds):
    await holds(model_faults.f18)


async def test_f19_repeated_rate_limits_are_retried_and_then_end_the_run(holds):
    await holds(model_faults.f19, 5)


async def test_f20_an_unreachable_provider_is_named(holds):
    await holds(model_faults.f20)


async def test_f21_an_exceeded_context_window_is_reported(holds):
    await holds(model_faults.f21)
