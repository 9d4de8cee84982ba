import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agents.llm.model_info import (
    DEFAULT_WINDOW,
    Price,
    context_window,
    is_responses_only,
    price,
)

CHEAP, DEAR = datetime(2026, 11, 16, 12, tzinfo=UTC), datetime(2026, 11, 16, 8, tzinfo=UTC)
SUNDAY = datetime(2026, 11, 15, 8, tzinfo=UTC)


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o"])
def test_a_known_model_has_a_context_window_with_and_without_prefix(model):
    assert context_window(model) == 128_000


def test_an_unknown_model_gets_a_conservative_context_window():
    assert context_window("openai/my-own-model") == DEFAULT_WINDOW


def test_a_price_belongs_to_one_providers_model():
    assert price("openai/gpt-4.1-mini") == Price(
        input=0.4e-6, output=1.6e-6, read=0.1e-6, written=0.4e-6
    )
    assert price("groq/openai/gpt-oss-120b").input == 0.15e-6


@pytest.mark.parametrize(
    "model", ["openai/my-own", "hosted_vllm/gpt-4.1-mini", "openrouter/openai/gpt-4.1-mini"]
)
def test_an_unknown_model_has_no_price(model):
    assert price(model) is None


def test_cached_tokens_are_not_charged_twice():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20},
    }

    assert Price(input=1.0, output=5.0, read=0.1, written=2.0).of(usage) == 20 + 6 + 40 + 50


def test_sound_in_a_prompt_can_have_its_own_price():
    usage = {"prompt_tokens": 100, "completion_tokens": 0}
    usage["prompt_tokens_details"] = {"cached_tokens": 20, "audio_tokens": 30}
    silent = Price(input=1.0, output=5.0, read=0.1, written=2.0)
    hearing = replace(silent, audio=3.0)

    assert silent.of(usage) == 80 + 2
    assert hearing.of(usage) == 50 + 90 + 2
    assert hearing.most(usage) == 300
    assert price("gemini/gemini-2.5-flash").audio == 1e-6


@pytest.mark.parametrize(("size", "times"), [(199_999, 1), (200_000, 2), (900_000, 2)])
def test_a_long_prompt_costs_more(size, times):
    assert price("xai/grok-4.7", size).input == pytest.approx(times * 2e-6)


@pytest.mark.parametrize(("moment", "dollars"), [(DEAR, 1.32), (CHEAP, 0.66), (SUNDAY, 0.66)])
def test_off_peak_hours_are_cheaper_where_documented(moment, dollars):
    assert price("deepseek/deepseek-v4-pro", moment=moment).input == dollars * 1e-6


def test_models_of_the_responses_api_are_known():
    assert is_responses_only("openai/gpt-5-codex")
    assert not is_responses_only("openai/gpt-4.1")
    assert not is_responses_only("openai/my-own")


def test_lookups_do_not_import_litellm():
    code = "import sys; from agents.llm import model_info; model_info.context_window('x'); "
    code += "print('litellm' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ran.stdout.strip() == "False"
