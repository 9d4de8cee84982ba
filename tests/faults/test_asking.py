"""Misbehaving models: each row once."""

import pytest

from tests.faults import asking

# The engine and the models have tests of the same; here they go through the whole product.
pytestmark = pytest.mark.thorough


async def test_f13_a_stream_that_is_cut_keeps_what_was_said(holds):
    await holds(asking.f13)


async def test_f14_a_model_that_does_not_begin_is_said_to_be_slow_and_given_up(holds):
    await holds(asking.f14)


async def test_f15_a_model_that_falls_silent_is_given_up(holds):
    await holds(asking.f15)


async def test_f16_a_model_that_drips_for_ever_is_ended(holds):
    await holds(asking.f16)


async def test_f17_garbage_of_a_model_ends_in_words_or_is_fixed(holds):
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
