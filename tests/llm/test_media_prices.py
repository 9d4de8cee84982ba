"""Prices of sound and images; what isn't in the table is unknown, not free."""

import pytest

from agents.llm import media_prices


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (media_prices.transcription_usage("openai/whisper-1", {}, 60), 0.006),
        (media_prices.transcription_usage("openai/whisper-1", {"duration": 120.0}, 99), 0.012),
        (
            media_prices.transcription_usage(
                "openai/gpt-4o-transcribe",
                {"usage": {"input_tokens": 1_000, "output_tokens": 100}},
                60,
            ),
            0.0035,
        ),
        (media_prices.transcription_usage("openai/whisper-1", {}, 0), None),
        (media_prices.transcription_usage("openai/my-own", {"duration": 9.0}, 9), None),
        (media_prices.speech_usage("openai/tts-1", 1_000), 0.015),
        (media_prices.speech_usage("openai/gpt-4o-mini-tts", 1_000, 60), 0.015),
        (media_prices.speech_usage("openai/my-own", 1_000, 60), None),
        (media_prices.image_usage("openai/gpt-image-1", {"output_tokens": 1_000}), 0.04),
        (media_prices.image_usage("openai/gpt-image-1", {}), None),
        (media_prices.chat_usage("openai/gpt-4.1", {"prompt_tokens": 9}), None),
        (media_prices.chat_usage("openai/x", {"completion_tokens": 9, "cost": 0.5}), 0.5),
    ],
)
def test_costs_come_from_the_table_and_the_reply(usage, cost):
    assert usage.cost == (None if cost is None else pytest.approx(cost, rel=0.01))


def test_a_usage_event_has_tokens_and_an_unknown_cost():
    data = media_prices.image_usage("openai/x", {"input_tokens": 2, "output_tokens": 3})
    assert data.to_dict() == {
        "model": "openai/x",
        "cost": None,
        "prompt_tokens": 2,
        "completion_tokens": 3,
        "total_tokens": 5,
        "estimated": False,
    }


@pytest.mark.parametrize("count", [10**9, 10**400, float("inf")])
def test_what_cannot_be_true_is_limited_and_noted(count):
    lie = {"usage": {"input_tokens": count, "output_tokens": count}, "duration": count}

    found = media_prices.transcription_usage("openai/whisper-1", lie, 60)
    assert found.cost <= 0.02
    assert found.prompt_tokens + found.completion_tokens <= 2 * 120 * 100
    assert found.to_dict()["reported"]["seconds"] >= 10**9

    image = media_prices.image_usage("openai/gpt-image-1", lie["usage"], "A crane")
    assert (image.cost or 0) < 1
    assert image.prompt_tokens + image.completion_tokens < 25_000
