"""Which models accept an effort or a temperature."""

import pytest

from agents.llm import tuning

MOST = {"max_tokens": 4096}


@pytest.mark.parametrize(
    ("model", "takes_effort", "most"),
    [
        ("anthropic/claude-sonnet-4-5", True, 1.0),
        ("openai/gpt-5", True, 0.0),
        ("gpt-5", True, 0.0),
        ("openai/gpt-4.1", False, 2.0),
        ("openai/llama-of-our-own", False, 2.0),
    ],
)
def test_a_model_accepts_what_its_provider_documents(model, takes_effort, most):
    assert tuning.takes_effort(model, {}) is takes_effort
    assert tuning.max_temperature(model, {}) == most


def test_a_model_that_is_configured_to_reason_has_an_effort_and_no_temperature():
    own = {"reasoning_effort": "low"}

    assert tuning.takes_effort("openai/llama-of-our-own", own)
    assert tuning.max_temperature("openai/llama-of-our-own", own) == 0


def test_an_effort_replaces_the_configured_reasoning_and_leaves_room_for_the_answer():
    own = {**MOST, "thinking": {"type": "enabled"}, "temperature": 0.3, "seed": 7}

    tuned = tuning.tune("anthropic/claude-sonnet-4-5", own, "high", 0.9)

    assert tuned == {"max_tokens": 8192, "seed": 7, "reasoning_effort": "high"}


def test_a_temperature_stays_within_what_the_model_accepts():
    assert tuning.tune("anthropic/claude-sonnet-4-5", MOST, "", 1.7)["temperature"] == 1
    assert tuning.tune("openai/gpt-4.1", MOST, "", 1.7)["temperature"] == 1.7


@pytest.mark.parametrize(("effort", "temperature"), [("high", None), ("", None)])
def test_what_a_model_does_not_accept_is_not_sent(effort, temperature):
    assert tuning.tune("openai/gpt-4.1", MOST, effort, temperature) == MOST
    assert tuning.tune("openai/gpt-5", MOST, "", 0.5) == MOST
