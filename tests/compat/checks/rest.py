"""The REST API: every command of its page with curl, and its document with schemathesis."""

import asyncio
import json
import re
import shutil
import tempfile
from pathlib import Path

from tests import wire
from tests.compat.installation import Installation
from tests.compat.packages import ROOT, python_programs, version
from tests.compat.rows import NotTried, row

AREA = "Ways in"
PAGE = ROOT / "docs" / "rest.md"
MODEL = "the model's responses"
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Of a business rule, such as a cursor that isn't one, a schema can't say that it is invalid.
LEFT_OUT_CHECKS = "positive_data_acceptance"
FUZZ_SECONDS = 900
MOST_ANSWERS = 10_000
MAKE_KEY = """
from django.contrib.auth.models import User
from agents.access import api_keys
from agents.models import ApiKey
user = User.objects.get(username={user!r})
print(api_keys.create(user, "CI", ApiKey.Scope.values, requests_per_minute=1_000_000)[1])
"""


async def _make_key(installation: Installation, user: str) -> str:
    code = MAKE_KEY.format(user=user)
    printed = await asyncio.to_thread(
        installation.product.run, "manage.py", "shell", "--verbosity", "0", "-c", code
    )
    return printed.strip().splitlines()[-1]


async def _run(*command: str, folder: Path, seconds: float, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = output.decode(errors="replace")
    assert process.returncode == 0, text[-3_000:]
    return text


@row(AREA, "REST with curl", real="curl and the product as a process", played=MODEL)
async def curl() -> str:
    """Run every command of docs/rest.md, with the ids that the ones before it returned."""
    if shutil.which("curl") is None:
        raise NotTried("curl isn't installed.")
    known: dict[str, str] = {}
    count = 0
    async with Installation() as installation:
        key = await _make_key(installation, "demo")
        environment = {"ASHIATO": installation.product.url, "ASHIATO_KEY": key}
        call = wire.call(("calculator", '{"expression": "6 * 7"}'))
        replies = [wire.say("42."), call, wire.say("42."), wire.say("A file.")]
        installation.script(*replies)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(ROOT / "README.md", folder)
            for block in COMMANDS.findall(PAGE.read_text()):
                if "export ASHIATO" in block:
                    continue
                for variable, value in known.items():
                    block = re.sub(
                        rf"^{variable}=.*$", f"{variable}={value}", block, flags=re.M
                    )
                output = await _run(
                    "bash", "-euc", block, folder=folder, seconds=120, **environment
                )
                known |= _ids(block, output)
                count += block.count("curl ")
            lines = (folder / "traces.jsonl").read_text().splitlines()
    [trace] = map(json.loads, lines)
    assert trace["run"]["answer"] == "42.", trace["run"]
    return f"{count} commands"


def _ids(block: str, output: str) -> dict[str, str]:
    """Return what later commands need of an output, after checking that it is no error."""
    if "event-stream" in block:
        assert "event: run_finished" in output, output[-500:]
        return {}
    assert "about:blank" not in output, output
    values = list(_json_values(output))
    last = values[-1] if values else {}
    if block.count('/approvals"'):
        [asked] = last["items"]
        return {"APPROVAL": str(asked["id"]), "DIGEST": asked["digest"]}
    if '/runs"' in block and "--json" in block:
        return {"RUN": str(last["id"])}
    if '/files"' in block:
        return {"FILE": str(last["id"])}
    return {}


def _json_values(text: str) -> list[dict]:
    """Return the values that stand one after the other in a text."""
    decoder = json.JSONDecoder()
    values = []
    start = 0
    while (start := text.find("{", start)) >= 0:
        value, start = decoder.raw_decode(text, start)
        values.append(value)
    return values


@row(
    AREA,
    "schemathesis over the OpenAPI document",
    version("schemathesis"),
    real="schemathesis and the product as a process",
    played=MODEL,
)
async def schemathesis() -> str:
    """Find no 500 and no mismatch between the document and the server."""
    programs = await asyncio.to_thread(python_programs, "schemathesis")
    async with Installation() as installation:
        key = await _make_key(installation, "demo")
        installation.script(*[wire.say("42.")] * MOST_ANSWERS)
        url = f"{installation.product.url}/api/v1"
        with tempfile.TemporaryDirectory() as name:
            output = await _run(
                *(str(programs / "st"), "run", f"{url}/openapi.json", "--url", url),
                *("--header", f"Authorization: Bearer {key}"),
                *("--exclude-checks", LEFT_OUT_CHECKS, "--max-examples", "20", "--seed", "1"),
                *("--request-timeout", "70", "--no-color"),
                folder=Path(name),
                seconds=FUZZ_SECONDS,
            )
    found = re.search(r"(\d+) generated, (\d+) passed", output)
    return f"{found[1]} test cases" if found else "no failure"
