"""The product itself, asked one question from the command line in a folder of its own."""

import asyncio
import sys
import tempfile
from collections.abc import Mapping

import psutil

from tests.bench.processes import child

# Long, because a busy machine is slow: a process that dies is noticed at once.
COMMAND_SECONDS = 600


async def ask(question: str, data: str, settings: Mapping[str, str]) -> str:
    """Return the answer of a new installation with these settings."""
    env = {"ASHIATO_DATA": data, **settings}
    await _manage("setup", env=env)
    return await _manage("ask", question, env=env)


async def _manage(*command: str, env: Mapping[str, str]) -> str:
    status, output, errors = await run_python("manage.py", *command, env=env)
    assert status == 0, f"manage.py {command[0]}: {errors.strip()[-500:]}"
    return output.strip()


async def run_python(
    *arguments: str, env: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Return the status, the output and the errors of a process, which never outlives this."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        streams = {"stdout": output, "stderr": errors}
        with child(*arguments, program=sys.executable, env=dict(env or {}), **streams) as it:
            try:
                status = await asyncio.to_thread(it.wait, COMMAND_SECONDS)
            except psutil.TimeoutExpired as error:
                command = " ".join(arguments[:2])
                raise TimeoutError(
                    f"{command} took longer than {COMMAND_SECONDS} s."
                ) from error
        output.seek(0)
        errors.seek(0)
        return status, output.read(), errors.read()
