"""The product itself, asked one question from the command line in a folder of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping

from tests.compat.packages import ROOT

ASK_SECONDS = 240


async def ask(question: str, data: str, settings: Mapping[str, str]) -> str:
    """Return the answer of a new installation with these settings."""
    env = {**os.environ, "ASHIATO_DATA": data, **settings}
    await _manage("setup", env=env)
    return await _manage("ask", question, env=env)


async def _manage(*command: str, env: Mapping[str, str]) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=ASK_SECONDS,
    )
    assert done.returncode == 0, f"{command[0]}: {done.stderr.strip()[-500:]}"
    return done.stdout.strip()
