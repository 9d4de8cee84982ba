"""n8n: the workflows of the pages, imported and executed from its command line."""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.compat.packages import node_packages, node_path, version
from tests.compat.rows import row
from tests.compat.served import Served, example, run, serve

WAYS_IN = "Ways in"
DEMO = "the demo model"
PACKAGE = "n8n"
SITE = "https://ashiato.example.com"
PUBLIC_ID = "compat"
SECRET = "a-secret-of-this-trigger"
# Its answer is read from its run.
MAKE_TRIGGER = """
import django
django.setup()
from django.contrib.auth import get_user_model
from agents.models import Agent, Trigger
Trigger.objects.create(
    name="n8n", public_id="{public_id}", secret="{secret}", verification="bearer",
    user=get_user_model().objects.get(username="demo"),
    agent=Agent.objects.get(name="helper"),
    question="Issue ${{payload.issue.number}}: what is 6 * 7?",
)
"""
CREDENTIALS = {"openAiApi": "ashiatoModels", "httpHeaderAuth": "ashiatoTrigger"}
QUIET = {
    "N8N_DIAGNOSTICS_ENABLED": "false",
    "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
    "N8N_RUNNERS_ENABLED": "false",
}


@row(
    WAYS_IN,
    "n8n",
    version(PACKAGE),
    real="n8n with the workflows of the pages, executed by its command",
    played=DEMO,
)
async def check_n8n() -> str:
    packages = await node_packages(PACKAGE, PACKAGE, builds=("sqlite3",))
    script = MAKE_TRIGGER.format(public_id=PUBLIC_ID, secret=SECRET)
    async with serve(script=script) as ashiato:
        with tempfile.TemporaryDirectory() as name:
            n8n = N8n(packages, Path(name), ashiato)
            await n8n.import_credentials()
            asked = await n8n.execute("openai.md", 0)
            started = await n8n.execute("webhooks.md", 2)
        run_id = started["Call trigger"]["run"]
        headers = f"Authorization: Bearer {ashiato.key}"
        address = f"{ashiato.url}/api/v1/runs/{run_id}/wait?seconds=60"
        finished = json.loads(await run("curl", "-s", address, "-H", headers))
    assert "42" in asked["Ask"]["text"], asked
    assert "56" in json.dumps(asked["Ask over HTTP"]["choices"]), asked
    assert finished["status"] == "completed", finished
    assert "42" in finished["answer"], finished
    return "an agent as a chat model and over HTTP, a trigger called"


class N8n:
    """n8n with a folder of its own."""

    def __init__(self, packages: Path, folder: Path, ashiato: Served) -> None:
        self.program = packages / "node_modules" / ".bin" / PACKAGE
        self.folder = folder
        self.ashiato = ashiato

    async def import_credentials(self) -> None:
        values: dict[str, dict[str, str]] = {
            "openAiApi": {"apiKey": self.ashiato.key, "url": f"{self.ashiato.url}/v1"},
            "httpHeaderAuth": {"name": "Authorization", "value": f"Bearer {SECRET}"},
        }
        credentials = [
            {"id": id, "name": id, "type": kind, "data": values[kind]}
            for kind, id in CREDENTIALS.items()
        ]
        await self._import("credentials", credentials)

    async def execute(self, page: str, number: int) -> dict[str, Any]:
        """Execute the workflow of a page, and return what each node returned."""
        text = example(page, "json", number).replace("hooks/…", f"hooks/{PUBLIC_ID}")
        workflow = json.loads(text.replace(SITE, self.ashiato.url))
        id = page.partition(".")[0]
        workflow |= {"id": id, "name": id, "active": False, "settings": {}}
        for node in workflow["nodes"]:  # as a user chooses them in the editor
            id_of = {kind: CREDENTIALS[kind] for kind in _credential_kinds(node)}
            node["credentials"] = {kind: {"id": id, "name": id} for kind, id in id_of.items()}
        await self._import("workflow", [workflow])
        output = await self._run("execute", f"--id={workflow['id']}", "--rawOutput")
        # Between what it logs.
        executed, _end = json.JSONDecoder().raw_decode(output[output.index("\n{") + 1 :])
        assert executed["status"] == "success", output[-2000:]
        nodes = executed["data"]["resultData"]["runData"]
        return {
            name: runs[0]["data"]["main"][0][0]["json"]
            for name, runs in nodes.items()
            if "main" in runs[0]["data"]
        }

    async def _import(self, kind: str, rows: list[dict[str, Any]]) -> None:
        file = self.folder / f"{kind}.json"
        file.write_text(json.dumps(rows))
        await self._run(f"import:{kind}", f"--input={file}")

    async def _run(self, *arguments: str) -> str:
        variables = {**QUIET, "PATH": node_path(), "N8N_USER_FOLDER": str(self.folder)}
        return await run(str(self.program), *arguments, env=variables)


def _credential_kinds(node: dict[str, Any]) -> list[str]:
    if node["type"].endswith(".lmChatOpenAi"):
        return ["openAiApi"]
    parameters = node["parameters"]
    kinds = (parameters.get("nodeCredentialType"), parameters.get("genericAuthType"))
    return [kind for kind in kinds if kind]
