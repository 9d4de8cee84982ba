"""Measures cached calls in a new installation and prints the figures as JSON."""

import asyncio
import json
import os
import sys
import time
from datetime import timedelta
from statistics import median

import django


class SlowTool:
    """A tool that waits for a server."""

    name, description, effect = "weather", "Weather.", "read"

    async def execute(self, _input):
        from agents.engine.tool import ToolResult

        await asyncio.sleep(0.02)
        return ToolResult("Rain in Oslo. " * 40)


async def _measure(count: int) -> list[dict]:
    from agents.engine import FallbackStrategy, ToolRegistry
    from agents.engine.call_context import CallContext
    from agents.engine.loop.capability import Hooks
    from agents.engine.loop.tool_calls.cached_calls import ResultCache
    from agents.engine.loop.tool_calls.tool_runner import ToolRunner
    from agents.engine.turn.assembly import ToolCall

    tool = SlowTool()
    cache = await asyncio.to_thread(_store)

    async def calls(name: str, city: str, store) -> dict:
        hooks = Hooks([ResultCache({tool.name: store})] if store else [])
        runner = ToolRunner(ToolRegistry([tool]), FallbackStrategy(), hooks=hooks)
        took = []
        began = time.process_time()
        for number in range(count):
            arguments = json.dumps({"city": city.format(number)})
            started = time.perf_counter()
            await runner.use(
                ToolCall(id="c", name="weather", arguments=arguments), CallContext()
            )
            took.append(1000 * (time.perf_counter() - started))
        cpu = 1000 * (time.process_time() - began) / count
        return {"call": name, "wall ms": median(took), "cpu ms": cpu}

    await calls("warm-up", "warm-{}", cache)
    found = [
        await calls("without a cache", "Oslo {}", None),
        await calls("miss", "Rome {}", cache),
        await calls("hit", "Rome {}", cache),
    ]
    return [{**row, "wall ×": row["wall ms"] / found[0]["wall ms"]} for row in found]


def _store():
    from django.contrib.auth.models import User

    from agents.metering.caches import ToolResultStore, group_name, groups, tool_version
    from agents.models import ToolRegistration

    groups.KNOWN_AFTER = timedelta(0)
    person = User.objects.create_user("ada")
    row = ToolRegistration.objects.create(
        name="weather", source="http", endpoint="https://example.com", result_cache="person"
    )
    return ToolResultStore(
        is_read=True,
        tool=row.pk,
        group=group_name(row),
        version=tool_version(row),
        lifetime=300,
        user_id=person.pk,
    )


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps({"rows": asyncio.run(_measure(int(sys.argv[1])))}))


if __name__ == "__main__":
    main()
