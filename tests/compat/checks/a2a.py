"""A2A and AG-UI with their published clients, and A2A by its compatibility kit."""

import asyncio
import itertools
import json
import os
import re
import sys
from pathlib import Path

from tests import wire
from tests.bench.processes import child, free_port, wait_for_page
from tests.compat.browser import browser_page
from tests.compat.packages import (
    installed_version,
    node_packages,
    node_path,
    python_programs,
    version,
)
from tests.compat.rows import NotTried, row
from tests.compat.served import example, run, serve
from tests.compat.table import CONFORMANCE

WAYS_IN = "Ways in"
PAGE = "a2a.md"
DEMO = "the demo model"
AG_UI = "@ag-ui/client"
RUNTIME = "@copilotkit/runtime"
BUN = "bun"
START_SECONDS = 60
# The kit is a repository (a2aproject/a2a-tck) without releases.
KIT_VARIABLE = "ASHIATO_A2A_TCK"
GIVE_QUESTIONS = """
import django
django.setup()
from agents.models import Agent, ToolRegistration
tool = ToolRegistration.objects.get(name="ask_person")
Agent.objects.get(name="helper").tools.add(tool)
"""


@row(WAYS_IN, "A2A (a2a-sdk)", installed_version("a2a-sdk"), real="the client", played=DEMO)
async def check_a2a() -> str:
    async with serve() as ashiato:
        variables = {"ASHIATO_URL": ashiato.url, "ASHIATO_KEY": ashiato.key}
        output = await run(sys.executable, "-c", example(PAGE, "python"), env=variables)
    assert "42" in output, output
    return "an agent asked, its answer streamed"


@row(WAYS_IN, "AG-UI (@ag-ui/client)", version(AG_UI), real="the client", played=DEMO)
async def check_ag_ui() -> str:
    script = await node_packages("ag-ui", AG_UI) / "ask.js"
    script.write_text(example(PAGE, "js"))
    async with serve() as ashiato:
        variables = {"ASHIATO_URL": ashiato.url, "ASHIATO_KEY": ashiato.key}
        output = await run("node", str(script), env=variables)
    assert "assistant:" in output, output
    assert "42" in output, output
    return "an agent asked, its tool call and answer"


@row(
    WAYS_IN,
    "CopilotKit",
    version(RUNTIME),
    real="its runtime and its React chat, bundled and in a browser",
    played=DEMO,
)
async def check_copilotkit() -> str:
    bun = await node_packages("bun", BUN) / "node_modules" / ".bin" / BUN
    packages = ("@copilotkit/react-core", "react", "react-dom")
    folder = await node_packages("copilotkit", RUNTIME, *packages, builds=())
    # The agent that asks before each call.
    server, page = (
        example(PAGE, language, number).replace("helper", "careful")
        for language, number in (("js", 1), ("jsx", 0))
    )
    (folder / "server.mjs").write_text(server)
    (folder / "page.jsx").write_text(page)
    await run(str(bun), "build", str(folder / "page.jsx"), "--outdir", str(folder / "page"))
    port = free_port()
    log = folder / "server.log"
    log.write_text("")
    async with serve() as ashiato:
        env = {"ASHIATO_URL": ashiato.url, "ASHIATO_KEY": ashiato.key, "PORT": str(port)}
        env |= {"PATH": node_path(), "COPILOTKIT_TELEMETRY_DISABLED": "true"}
        with child(str(folder / "server.mjs"), program="node", env=env, log=log) as process:
            url = f"http://127.0.0.1:{port}"
            await asyncio.to_thread(
                wait_for_page, f"{url}/api/copilotkit/info", process, log, START_SECONDS
            )
            await _chat_in_copilotkit(url, folder / "page")
    return "a question, an approval, the answer"


async def _chat_in_copilotkit(url: str, bundle: Path) -> None:
    """Ask a question on a page with this bundle, and approve the call."""
    html = """<!doctype html><link rel="stylesheet" href="/page/page.css">
        <div id="root" style="height: 100vh"></div>
        <script type="module" src="/page/page.js"></script>"""
    async with browser_page() as page:
        await page.route(
            f"{url}/", lambda route: route.fulfill(body=html, content_type="text/html")
        )
        await page.route(
            f"{url}/page/*",
            lambda route: route.fulfill(path=bundle / route.request.url.rpartition("/")[2]),
        )
        await page.goto(f"{url}/", wait_until="commit")
        question = page.get_by_role("textbox")
        await question.fill("What is 6 * 7?")
        await question.press("Enter")
        asked = page.locator("fieldset")
        await asked.get_by_text("calculator").wait_for()
        await asked.get_by_role("button", name="Approve").click()
        await page.get_by_text("The result is").wait_for()
        assert "42" in await page.locator("body").inner_text()


# Tests of the kit that expect what the protocol doesn't, or what no test on loopback has.
LEFT_OUT = (
    # They wait for the state “working” after a SendMessage that must return at the task's end.
    *("test_list_all_tasks", "test_list_tasks_empty_when_none_exist"),
    *("test_list_tasks_validates_required_fields", "test_filter_by_context_id"),
    *("test_list_tasks_sorted_by_timestamp_descending", "test_filter_by_status"),
    *("test_filter_by_last_updated_after", "test_combined_filters"),
    *("test_custom_page_size", "test_page_token_navigation", "test_last_page_detection"),
    *("test_total_size_accuracy", "test_history_length_zero", "test_history_length_custom"),
    *("test_history_length_exceeds_actual", "test_artifacts_excluded_by_default"),
    *("test_artifacts_included_when_requested", "test_default_page_size_is_50"),
    # It expects the number of tasks as `pageSize`.
    "test_default_page_size",
    # The SDK ignores unknown values of an enumeration.
    "test_invalid_status_error",
    # The card has the fields of version 0.3, too.
    "test_security_scheme_structure_compliance",
    "test_authentication_scheme_consistency",
    "test_security_scheme_consistency",
    # It reads the card below the address of JSON-RPC, other tests at the host's root.
    "test_public_agent_card_access_control",
    # A card on loopback contains the address 127.0.0.1.
    "test_sensitive_information_protection",
)
NOT_RUN = (
    "The kit's messages are of version 1.0, but without the header `A2A-Version`, which is "
    "added here. Left out: 18 tests of `ListTasks`, which create their tasks with a "
    "`SendMessage` that has to return while the task works, although without "
    "`returnImmediately` it returns at the task's end; one that expects the number of tasks as "
    "`pageSize`, which is the size of a page; one for an unknown status, which the SDK ignores "
    "like all unknown values; three that allow no field of version 0.3 in a security scheme; "
    "one that reads the card below the address of JSON-RPC; and one that doesn't allow "
    "127.0.0.1 in the card. The kit itself skips what needs HTTPS, OAuth or errors that can't "
    "be caused from outside."
)


@row(
    CONFORMANCE,
    "A2A",
    "March 2026",
    real="the official compatibility kit, a new installation",
    played="the model, which asks a question each time",
    notes=NOT_RUN,
)
async def check_kit() -> str:
    kit = os.environ.get(KIT_VARIABLE, "")
    if not await asyncio.to_thread(Path(kit, "run_tck.py").is_file):
        raise NotTried(f"{KIT_VARIABLE} isn't a checkout of a2aproject/a2a-tck.")
    numbers = itertools.count()

    def ask(_request: wire.Request) -> wire.Reply:
        return wire.call(
            ("ask_person", json.dumps({"question": f"Which one? {next(numbers)}"}))
        )

    async with (
        wire.WireServer(ask) as model,
        serve(script=GIVE_QUESTIONS, model_url=model.url) as ashiato,
    ):
        headers = {"Authorization": f"Bearer {ashiato.key}", "A2A-Version": "1.0"}
        suite = (
            *(str(python_programs("a2a-tck") / "python"), "-m", "pytest", "-q", "-rf"),
            *(
                "--rootdir",
                kit,
                "-c",
                str(Path(kit, "pyproject.toml")),
                "-p",
                "no:cacheprovider",
            ),
            *(str(Path(kit, "tests", "mandatory")), f"--sut-url={ashiato.url}/a2a/"),
            *("--test-scope=all", "-m", "mandatory or mandatory_protocol or mandatory_jsonrpc"),
            *("-k", " and ".join(f"not {name}" for name in LEFT_OUT)),
        )
        variables = {"A2A_AUTH_HEADERS": json.dumps(headers), "PYTHONPATH": kit}
        output = await run(*suite, env=variables, status=None)
    failed = re.findall(r"^FAILED \S+::(\w+)", output, re.MULTILINE)
    passed = re.search(r"(\d+) passed", output)
    assert not failed, failed
    assert passed, output[-500:]
    skipped = re.search(r"(\d+) skipped", output)
    return f"{passed[1]} passed, {skipped[1] if skipped else 0} skipped by the kit"
