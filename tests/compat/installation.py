"""An installation and its users: one imports a server, one asks an agent and approves."""

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

from tests import wire
from tests.compat.packages import HOME
from tests.faults import page
from tests.faults.product import PASSWORD, Product
from tests.faults.tab import CSRF, Tab

SERVERS = "/admin/agents/mcpserver"
CONFIGURATION = "/admin/configuration"
ATTEMPTS = 3  # to connect: the first one may still be downloading the server
START_SECONDS = 240
RUN_SECONDS = 120
AGENT = "helper"


@cache
def _first_start() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the data of a new installation, which each row copies."""
    folder = tempfile.TemporaryDirectory(dir=HOME, prefix="first-start-")
    Product(Path(folder.name), "", ASHIATO_TOOLS="").run("manage.py", "setup")
    return folder


class Installation:
    """The product as a process; its model's responses are scripted, everything else is real."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._script: list[wire.Reply] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        HOME.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=HOME, prefix="installation-")
        self.folder = Path(self._stack.enter_context(temporary))
        model = wire.WireServer(lambda _: self._script.pop(0))
        await self._stack.enter_async_context(model)
        self.product = Product(
            self.folder, model.url, ASHIATO_TOOLS="", ASHIATO_GENERATED_TITLES="false"
        )
        first_start = await asyncio.to_thread(_first_start)
        shutil.copytree(Path(first_start.name, "data"), self.folder / "data")
        found = ":".join(map(str, self._paths))
        self.product.environment["PATH"] = f"{found}:{self.product.environment['PATH']}"
        self.product.environment["ASHIATO_EGRESS_ALLOW"] = "127.0.0.1"
        self._stack.callback(self.product.end)
        self._stack.callback(self.product.stop)  # which ends its MCP servers
        await asyncio.to_thread(self.product.start, patience=START_SECONDS)
        [self.user] = await asyncio.to_thread(self.product.set_up, 1, 5)
        self.client = await self._stack.enter_async_context(aiohttp.ClientSession())
        self.headers = {"Cookie": f"csrftoken={CSRF}", "X-CSRFToken": CSRF}
        self.headers["Origin"] = self.product.url
        sign_in = {"username": "demo", "password": PASSWORD}
        url = f"{self.product.url}/login/"
        options: Any = {"headers": self.headers, "allow_redirects": False}
        async with self.client.post(url, data=sign_in, **options) as response:
            cookies = [f"{name}={each.value}" for name, each in response.cookies.items()]
            assert response.status == 302, await response.text()
        kept = [each for each in cookies if not each.startswith("csrftoken=")]
        self.headers["Cookie"] = "; ".join([*kept, f"csrftoken={CSRF}"])

    async def import_server(
        self,
        name: str,
        entry: Mapping[str, Any],
        folders: str = "",
        offers: str = "",
        **agent: Any,
    ) -> None:
        """Import a server in the console by its README, and give its tools to an agent.

        `offers` is a tool that the server adds only after its start. Other settings of the
        agent are given by name.
        """
        text = json.dumps({"mcpServers": {name: entry}})
        preview = await self._post(f"{SERVERS}/import/", text=text, preview="1")
        [seen] = re.findall(r'name="seen" value="(\w+)"', preview)
        picked = {"name-0": name, "pick-0": "on", "import": "1"}
        listed = await self._post(f"{SERVERS}/import/", text=text, seen=seen, **picked)
        [number] = set(re.findall(rf"{SERVERS}/(\d+)/change/", listed))
        if folders:
            await self._configure("servers", name, folders=folders)
        for _ in range(ATTEMPTS):
            tested = await self._post(f"{SERVERS}/{number}/test/")
            tools = set(re.findall(rf"\b{name}__[\w-]+", tested))
            is_ready = any(tool.endswith(offers) for tool in tools)
            if is_ready:
                break
        missing = f"The console doesn't list {offers or 'any tool'}.\n"
        assert is_ready, missing + page.read(tested).text[:2000]
        await self._configure("agents", AGENT, tools={tool: {} for tool in tools}, **agent)

    async def use(
        self, *calls: tuple[str, Mapping[str, Any]], sampled: Sequence[str] = ()
    ) -> page.Node:
        """Let the agent call these tools, approve each call, and return the run's trace.

        A form that a tool shows is filled in. `sampled` are the model's replies to a tool.
        """
        self._script += [wire.call((tool, json.dumps(values))) for tool, values in calls]
        self._script += [wire.say(text) for text in (*sampled, "Done.")]
        chat = self.user["chats"].pop()
        tab = await Tab(self.client, self.product.url, self.user, chat).open()
        approved = set()
        answered = set()
        try:
            await tab.ask("Please use your tools.", AGENT)
            async with asyncio.timeout(RUN_SECONDS):
                while not tab.runs or tab.is_live:
                    for question in tab.questions:
                        is_form = "elicitation" in question.attributes["class"].split()
                        decided = answered if is_form else approved
                        if question.attributes["id"] not in decided:
                            decided.add(question.attributes["id"])
                            status = await tab.decide(question, is_approved=True, text="Aiko")
                            assert status == HTTPStatus.NO_CONTENT, question.text
                    await asyncio.sleep(0.05)
        finally:
            await tab.close()
        run = tab.runs[-1].attributes
        assert run["data-status"] == "completed", tab.text[-1000:]
        assert len(approved) == len(calls), f"{len(approved)} approvals for {len(calls)} calls"
        number = run["id"].removeprefix("run-")
        return page.read((await self.download(f"/traces/{number}/")).decode())

    async def download(self, path: str) -> bytes:
        """Return a page or a file as the user sees it."""
        headers = {"Cookie": self.user["cookie"]}
        url = f"{self.product.url}{path}"
        async with self.client.get(url, headers=headers) as response:
            response.raise_for_status()
            return await response.read()

    def script(self, *replies: wire.Reply) -> None:
        """Let the model send these replies next."""
        self._script += replies

    async def restart(self) -> None:
        await asyncio.to_thread(self.product.stop)
        await asyncio.to_thread(self.product.start, patience=START_SECONDS)

    async def _configure(self, kind: str, name: str, **values: Any) -> None:
        """Change a row with a configuration file, exported and imported in the console."""
        exported = await self._post(f"{CONFIGURATION}/export/", kinds=kind, names=name)
        document = yaml.safe_load(exported)
        document[kind][name] |= values
        text = yaml.safe_dump(document)
        preview = await self._post(f"{CONFIGURATION}/difference/", text=text)
        [seal] = re.findall(r'name="seal" value="([^"]+)"', preview)
        await self._post(f"{CONFIGURATION}/apply/", text=text, seal=seal)

    async def _post(self, path: str, **data: str) -> str:
        url = f"{self.product.url}{path}"
        async with self.client.post(url, data=data, headers=self.headers) as response:
            response.raise_for_status()
            return await response.text()
