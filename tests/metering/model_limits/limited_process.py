"""A process that calls a model with limits, for the tests of several processes."""

import asyncio
import json
import sys
import time

import django
from django.conf import settings

LABEL = "shared"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def call(limiter, spans: list[tuple[float, float]], seconds: float) -> None:
    from agents.engine.resilience.rate_limiter import acquire_slot

    async with acquire_slot(limiter, LABEL):
        began = time.monotonic()  # the same clock in all processes
        await asyncio.sleep(seconds)
        spans.append((began, time.monotonic()))


async def work(most: int, calls: int, seconds: float) -> None:
    from agents.engine.resilience import Limits
    from agents.metering.model_limits import SharedRateLimiter

    limiter = SharedRateLimiter(LABEL, Limits(concurrency=most))
    spans: list[tuple[float, float]] = []
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(call(limiter, spans, seconds) for _ in range(calls)))
    say(json.dumps(spans))


async def hold() -> None:
    """Take a slot and keep it until this process is killed."""
    from agents.engine.resilience import Limits
    from agents.engine.resilience.rate_limiter import acquire_slot
    from agents.metering.model_limits import SharedRateLimiter

    async with acquire_slot(SharedRateLimiter(LABEL, Limits(concurrency=1)), LABEL):
        say("inside")
        await asyncio.sleep(600)


def main() -> None:
    about = json.loads(sys.argv[1])
    settings.DATABASES["default"] |= about["database"]
    django.setup()
    asyncio.run(work(**about["work"]) if about["work"] else hold())


if __name__ == "__main__":
    main()
