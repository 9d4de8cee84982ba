"""Webhooks and triggers with the published packages of Standard Webhooks."""

import asyncio
import sys
import time
from pathlib import Path

from tests.bench.processes import child, free_port
from tests.compat.packages import HOME, installed_version, node_packages, version
from tests.compat.rows import row
from tests.compat.served import example, run, serve

WAYS_IN = "Ways in"
PAGE = "webhooks.md"
DEMO = "the demo model"
PACKAGE = "standardwebhooks"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUBLIC_ID = "compat"
DELIVERY_SECONDS = 60.0
# A trigger whose answer goes to the receiver.
PREPARE = """
import django
django.setup()
from django.contrib.auth import get_user_model
from agents.insight.alerts.models import AlertChannel
from agents.models import Agent, Trigger
user = get_user_model().objects.get(username="demo")
channel = AlertChannel.objects.create(
    name=None, owner=user, description="compat", kind="webhook", secret="{secret}",
    url="http://127.0.0.1:{port}/", base_url="http://127.0.0.1/",
)
Trigger.objects.create(
    name="compat", public_id="{public_id}", user=user, secret="{secret}",
    agent=Agent.objects.get(name="helper"), result_channel=channel,
    question="Issue ${{payload.issue.number}}: what is 6 * 7?",
)
"""


async def _exchange(*receiver: str, program: str = sys.executable) -> str:
    """Call a trigger with the page's example, and return what the receiver has verified."""
    port = free_port()
    script = PREPARE.format(secret=SECRET, port=port, public_id=PUBLIC_ID)
    HOME.mkdir(parents=True, exist_ok=True)
    log = HOME / f"webhooks-{port}.log"
    environment = {"PORT": str(port), "WEBHOOK_SECRET": SECRET}
    try:
        async with serve(script=script, allowed=f"127.0.0.1:{port}") as ashiato:
            with child(*receiver, program=program, env=environment, log=log):
                variables = {
                    "TRIGGER_URL": f"{ashiato.url}/hooks/{PUBLIC_ID}",
                    "TRIGGER_SECRET": SECRET,
                }
                call = example(PAGE, "python", 1)
                answer = await run(sys.executable, "-c", call, env=variables)
                assert '"is_new": true' in answer, answer
                return await asyncio.to_thread(_wait_for_delivery, log)
    finally:
        log.unlink(missing_ok=True)


def _wait_for_delivery(log: Path) -> str:
    deadline = time.monotonic() + DELIVERY_SECONDS
    while "run.finished" not in (received := log.read_text()):
        assert time.monotonic() < deadline, received or "nothing was delivered"
        time.sleep(0.5)
    return received


@row(
    WAYS_IN,
    "Standard Webhooks (Python)",
    installed_version(PACKAGE),
    real="the package",
    played=DEMO,
)
async def check_python() -> str:
    received = await _exchange("-c", example(PAGE, "python"))
    assert "42" in received, received
    return "a trigger called, its answer delivered and verified"


@row(WAYS_IN, "Standard Webhooks (Node)", version(PACKAGE), real="the package", played=DEMO)
async def check_node() -> str:
    program = await node_packages("webhooks", PACKAGE) / "receive.js"
    program.write_text(example(PAGE, "js"))
    received = await _exchange(str(program), program="node")
    assert "42" in received, received
    return "a delivery verified"
