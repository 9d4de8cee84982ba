import asyncio
import subprocess
import sys
import threading
import time
from functools import cache

import pytest
import tiktoken

from agents.llm import tokens

CAT = "吾輩は猫である。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("足跡を残す", 6), ("a" * 8, 1)],
)
def test_tokens_are_counted_as_openai_counts_them(text, expected):
    assert tokens.count(text) == expected


def test_older_models_are_counted_by_their_own_tokenizer():
    text = "日本語のトークンを数える。" * 10

    assert tokens.count(text, "openai/gpt-4") != tokens.count(text, "openai/gpt-4o")
    assert tokens.count(text, "anthropic/claude-sonnet-5") == tokens.count(text)


def test_special_tokens_in_the_text_are_counted_as_text():
    assert tokens.count("<|endoftext|>") > 1


def test_a_lone_surrogate_can_be_counted():
    assert tokens.count("\ud83d") > 0


@pytest.mark.parametrize("text", ["a" * 200_000, " " * 200_000, CAT * 25_000])
def test_a_long_text_is_counted_in_less_than_a_second(text):
    tokens.count("")
    began = time.process_time()
    tokens.count(text)

    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "text",
    ["The quick brown fox jumps over the lazy dog. " * 20, "吾輩は猫である。" * 20, "😀"],
)
def test_an_estimate_is_too_high_rather_than_too_low(text):
    assert tokens.count(text) <= tokens.estimate(text) <= 3 * tokens.count(text) + 3


def test_without_its_files_a_count_is_an_estimate(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(tokens, "BUNDLED_PATH", tmp_path)
    monkeypatch.setattr(tokens, "_encoding", tokens._encoding.__wrapped__)
    tokens._count_cached.cache_clear()

    assert tokens.count("hello world") == tokens.estimate("hello world") == 4
    assert "tokens are estimated" in caplog.text


@pytest.mark.parametrize("model", ["", "openai/text-embedding-3-small"])
def test_the_event_loop_of_a_server_never_loads_a_tokenizer(model, monkeypatch):
    loaders = []
    load = tiktoken.get_encoding
    monkeypatch.setattr(
        tiktoken,
        "get_encoding",
        lambda name: loaders.append(threading.current_thread()) or load(name),
    )
    monkeypatch.setattr(tokens, "_encoding", cache(tokens._encoding.__wrapped__))
    for name in ("_loaded", "_loading"):
        monkeypatch.setattr(tokens, name, set())
    monkeypatch.setattr(tokens, "_loads_on_loop", False)
    tokens._count_cached.cache_clear()

    async def serve():
        meanwhile = tokens.count(CAT, model)
        async with asyncio.timeout(60):
            while not tokens._loaded:  # noqa: ASYNC110 - a thread adds it
                await asyncio.sleep(0.01)
        return meanwhile, tokens.count(CAT, model)

    meanwhile, counted = asyncio.run(serve())
    assert meanwhile == tokens.estimate(CAT)
    assert counted == tokens._count(CAT, *tokens._loaded)
    assert len(loaders) == 1
    assert threading.main_thread() not in loaders


def test_counting_does_not_import_litellm():
    code = "import sys; from agents.llm import tokens; tokens.count('x'); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert "tiktoken" in ran.stdout.split()
    assert "litellm" not in ran.stdout.split()
