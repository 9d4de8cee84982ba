"""Chunks that arrive together are batched, and none is lost."""

import asyncio

from agents.engine.errors import AdapterFailed
from agents.engine.planner.stream_batches import Deadlines, batched
from agents.engine.turn.assembly import TextChunk


def words(text, **more):
    choice = {"index": 0, "delta": {"content": text, **more}, "finish_reason": None}
    return {"id": "1", "choices": [choice]}


async def bursts(*bursts):
    for burst in bursts:
        for chunk in burst:
            yield chunk
        await asyncio.sleep(0.01)


async def collect_batches(*given):
    return [batch async for batch in batched(bursts(*given), Deadlines())]


async def test_text_that_arrives_together_is_one_chunk():
    assert await collect_batches([words("Foot"), words("prints ")], [words("lead")]) == [
        [TextChunk("Footprints ")],
        [words("lead")],
    ]


async def test_chunks_with_more_than_text_are_unchanged():
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [
        words("a", role="assistant"),
        words("b"),
        {**words("c"), "usage": {"prompt_tokens": 1}},
        words("d", reasoning="e"),
        {"id": "1", "choices": [end]},
        {"id": "1", "choices": []},
    ]

    assert await collect_batches(chunks) == [chunks]


async def test_text_before_a_failure_is_delivered_first():
    async def broken():
        yield words("a")
        yield words("b")
        raise EOFError

    heard = []
    try:
        async for batch in batched(broken(), Deadlines()):
            heard += batch
    except AdapterFailed:
        heard.append("the end")

    assert heard == [TextChunk("ab"), "the end"]
