"""Measures model calls with and without limits in a new installation; prints JSON."""

import asyncio
import json
import os
import sys
import time
from statistics import median

import django


class Speaker:
    """A model that says three words in 20 ms."""

    async def stream(self, **_request):
        for _number in range(3):
            yield {"choices": [{"delta": {"content": "word "}}]}
        await asyncio.sleep(0.02)
        yield {"usage": {"prompt_tokens": 5, "completion_tokens": 3, "cost": 0.001}}


async def _measure(count: int) -> list[dict]:
    from agents.llm.model_info import Price
    from agents.metering.budgets import limits
    from agents.metering.budgets.metered.metered_model import MeteredModel
    from agents.metering.budgets.payers import Payer

    price = Price(input=1e-6, output=1e-6, read=1e-6, written=1e-6)
    user = await asyncio.to_thread(_user)
    model = MeteredModel(Speaker(), "m", "m", price=price, payer=Payer(user=user, agent=1))
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}]}

    async def calls(name: str) -> dict:
        took, began = [], time.process_time()
        for _number in range(count):
            started = time.perf_counter()
            async for _chunk in model.stream(**asked):
                pass
            took.append(1000 * (time.perf_counter() - started))
        cpu = 1000 * (time.process_time() - began) / count
        return {"name": name, "ms": round(median(took), 2), "cpu ms": round(cpu, 2)}

    rows = [await calls("no limit")]
    for name, number in (("one limit", 1), ("five limits", 5)):
        await asyncio.to_thread(_save_limits, user, number)
        await asyncio.to_thread(limits.ROWS.refresh)
        rows.append(await calls(name))
    for row in rows:
        row["×"] = round(row["ms"] / rows[0]["ms"], 2)
    return rows


def _user() -> int:
    from django.contrib.auth.models import User

    return User.objects.create_user("ada").pk


def _save_limits(user: int, number: int) -> None:
    from agents.models import Quota

    windows = [("cost", "day"), ("cost", "month"), ("tokens", "day"), ("calls", "minute")]
    owners = [{"user_id": user}] * 4 + [{"is_shared": True}]
    for owner, (measure, window) in list(zip(owners, [*windows, windows[0]], strict=True))[
        :number
    ]:
        Quota.objects.get_or_create(
            measure=measure, window=window, defaults={"limit": 10**12}, **owner
        )


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    sys.stdout.write(json.dumps({"rows": asyncio.run(_measure(int(sys.argv[1])))}))
