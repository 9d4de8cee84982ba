"""Runs the house rules with a model behind an address, and prints each result as JSON.

`ASHIATO_DATA=folder DJANGO_SETTINGS_MODULE=project.settings python -m tests.memory.real_model
http://127.0.0.1:8080/v1` needs an empty data folder.
"""

import asyncio
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import django

if __name__ == "__main__":
    django.setup()

from django.contrib.auth.models import User
from django.core.management import call_command

from agents import runs
from tests.language_models import make_model

from . import comparison

FILE = Path(__file__).with_name("house_rules.toml")
LABEL = "weak"
# Short prompts and answers, because it runs on a processor.
SETTINGS = {
    "model": LABEL,
    "instructions": "Answer in one short sentence.",
    "max_output_tokens": 60,
}


def main(base_url: str) -> None:
    call_command("migrate", verbosity=0)
    user = User.objects.create_superuser("reviewer")
    make_model(
        LABEL,
        "openai/smollm2",
        base_url=base_url,
        api_key="none",
        parameters={"temperature": 0},
    )
    content = tomllib.loads(FILE.read_text("utf-8")) | {"settings": SETTINGS}
    asyncio.run(print_comparison(user, content))


async def print_comparison(user: User, content: dict[str, Any]) -> None:
    try:
        compared = await comparison.compare(user, content)
    finally:
        await runs.shut_down(hand_over=False)
    for switch, experiment in (("off", compared.off), ("on", compared.on)):
        async for result in experiment.results.select_related("run").order_by("number"):
            line = {
                "switch": switch,
                "name": result.name,
                "passed": result.state == result.State.PASSED,
                "answer": result.run.answer if result.run else "",
            }
            sys.stdout.write(f"{json.dumps(line, ensure_ascii=False)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
