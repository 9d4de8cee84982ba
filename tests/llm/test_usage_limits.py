"""A provider can't report more than was sent and asked for."""

import pytest

from agents.llm.model_info import Price
from agents.llm.usage_limits import UsageLimits

HELLO = [{"role": "user", "content": "hello there"}]
PRICE = Price(input=0.001, output=0.002, read=0.001, written=0.002)


def clamp(usage, messages=HELLO, **parameters):
    return UsageLimits("unlisted/model", messages, None, parameters).clamp(usage)


def test_cached_tokens_are_a_part_of_the_prompt():
    lie = {"cached_tokens": 100_000, "cache_creation_tokens": 100_000}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": lie}

    found = clamp(usage | {"cache_read_input_tokens": 100_000})

    assert PRICE.of(found) <= 10 * 0.002 + 5 * 0.002
    assert found["cache_read_input_tokens"] == 10
    assert found["reported"]["cached_tokens"] == 100_000


def test_an_answer_has_at_most_the_tokens_that_were_asked_for():
    thoughts = {"reasoning_tokens": 40_000}
    usage = {"prompt_tokens": 10, "completion_tokens": 50_000}

    found = clamp(usage | {"completion_tokens_details": thoughts}, max_tokens=100)

    assert found["completion_tokens"] == 100
    assert found["completion_tokens_details"] == {"reasoning_tokens": 100}
    assert found["reported"] == {"completion_tokens": 50_000, "reasoning_tokens": 40_000}


@pytest.mark.parametrize("count", [10**6, 10**30])
def test_a_prompt_has_at_most_what_was_sent_with_a_margin(count):
    found = clamp({"prompt_tokens": count, "completion_tokens": 1})

    assert found["prompt_tokens"] < 1_100
    assert found["reported"]["prompt_tokens"] >= 10**6


@pytest.mark.parametrize("count", [-1, float("nan"), float("inf"), "7"])
def test_what_is_no_count_is_left_out(count):
    assert "prompt_tokens" not in clamp({"prompt_tokens": count, "completion_tokens": 1})


def test_details_are_nested_and_named_within_limits():
    nested = {"x_tokens": 1}
    for _ in range(800):
        nested = {"details": nested}
    names = {f"cache_{number}": 10**9 for number in range(1_000)}
    counts = {"prompt_tokens": 10, "completion_tokens": 5}

    found = clamp(counts | {"prompt_tokens_details": nested} | names)

    assert counts.items() <= found.items()
    assert "prompt_tokens_details" not in found
    assert len(found["reported"]) == 10


@pytest.mark.parametrize("text", ["0123456789, " * 500, "お茶をください。" * 2_000])
def test_an_honest_report_stays_as_it_is(text):
    usage = {"prompt_tokens": len(text), "completion_tokens": 7, "total_tokens": 9}

    assert clamp(usage, [{"role": "user", "content": text}], max_tokens=7) == usage


def test_a_reported_cost_is_at_most_that_of_its_tokens(monkeypatch):
    monkeypatch.setattr("agents.llm.model_info.price", lambda *_: PRICE)
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 714.0}

    found = UsageLimits("m", HELLO, None, {}).clamp_cost(usage)

    assert found["cost"] == pytest.approx(0.03)
    assert found["reported"] == {"cost": 714.0}
