"""Prices of sound and images; what isn't in the table is unknown, not free."""

import pytest

from agents.llm import media_prices


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (media_prices.transcription_usage("openai/whisper-1", {}, 60), 0.006),
        (media_prices.transcription_usage("openai/whisper-1", {"duration": 120.0}, 1), 0.012),
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
