"""One of several processes whose runs spend the same user's money; prints what they spent."""

import asyncio
import json
import os
import random
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
CENT = 10_000


class Spender:
    """A model that streams three words and reports a random cost of up to two cents."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.spent = 0

    async def stream(self, **_request):
        for _number in range(3):
            yield {"choices": [{"delta": {"content": "word "}}]}
            await asyncio.sleep(self.chance.uniform(0, 0.01))
        cost = self.chance.randint(CENT // 2, 2 * CENT)
        self.spent += cost
        yield {"usage": {"prompt_tokens": 1, "completion_tokens": 90, "cost": cost / 1_000_000}}


async def spend(llm: Spender, user: int) -> int:
    """Call the model until a limit refuses; return the number of calls."""
    from agents.engine.errors import QuotaExceeded
    from agents.llm.model_info import Price
    from agents.metering.budgets.metered.metered_model import MeteredModel
    from agents.metering.budgets.payers import Payer

    price = Price(input=0.0, output=0.0002, read=0.0, written=0.0)  # 100 tokens: two cents
    model = MeteredModel(llm, "m", "m", price=price, payer=Payer(user=user))
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}], "max_tokens": 100}
    calls = 0
    while True:
        try:
            async for _chunk in model.stream(**asked):
                pass
        except QuotaExceeded as error:
            if error.refusal and error.refusal.reason == "spent":
                return calls
            continue
        calls += 1


async def main(user: int, runs: int, seed: int) -> None:
    llm = Spender(seed)
    calls = await asyncio.gather(*(spend(llm, user) for _number in range(runs)))
    sys.stdout.write(json.dumps({"spent": llm.spent, "calls": sum(calls)}))


if __name__ == "__main__":
    database, user, runs, seed = sys.argv[1], *map(int, sys.argv[2:5])
    django.setup()
    from django.db import connections

    from agents.metering.budgets import gate, limits

    connections.settings["default"]["NAME"] = database
    limits.ROWS.refresh()
    gate.WAIT_SECONDS = 2.0
    asyncio.run(main(user, runs, seed))
