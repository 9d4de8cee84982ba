"""Model servers and gateways."""

import json
import tempfile
from pathlib import Path

from tests.bench.processes import child, free_port, wait_for_page
from tests.compat.packages import python_programs, version
from tests.compat.product import ask
from tests.compat.rows import Check, row
from tests.compat.suite import run_tests
from tests.llm.test_model_servers import ROUTES, SERVERS
from tests.wire import WireServer, call, say

AREA = "Model servers"
START_SECONDS = 600  # one that dies is noticed at once
KEY = "sk-compat-proxy"


@row(
    AREA,
    "LiteLLM proxy",
    version("litellm"),
    real="the proxy, Ashiato, a run with a tool call",
    played="the model behind the proxy",
)
async def check_litellm_proxy() -> str:
    program, port = python_programs("proxy") / "litellm", free_port()
    script = [call(("calculator", '{"expression": "6*7"}')), say("It is 42.")]
    with tempfile.TemporaryDirectory() as folder:
        log, url = Path(folder, "log"), f"http://127.0.0.1:{port}"
        async with WireServer(script) as server:
            config = _config(folder, server.url)
            serve = ("--config", config, "--host", "127.0.0.1", "--port", port)
            env = {"LITELLM_MASTER_KEY": KEY}
            with child(*serve, program=program, env=env, log=log) as process:
                wait_for_page(f"{url}/health/liveliness", process, log, START_SECONDS)
                settings = {
                    "ASHIATO_MODEL": "openai/team-model",
                    "ASHIATO_MODEL_URL": f"{url}/v1",
                    "ASHIATO_MODEL_KEY": KEY,
                }
                answer = await ask("What is 6*7?", f"{folder}/data", settings)
    assert "42" in answer, answer
    return "a tool called, the answer streamed"


def _config(folder: str, url: str) -> Path:
    upstream = {"model": "openai/upstream", "api_base": url, "api_key": "sk-upstream"}
    models = [{"model_name": "team-model", "litellm_params": upstream}]
    path = Path(folder, "config.yaml")
    path.write_text(json.dumps({"model_list": models}))  # JSON is YAML too
    return path


WIRE_TESTS = (
    "test_tools_are_offered_and_their_calls_arrive_whole",
    "test_reasoning_is_separated_from_the_answer",
    "test_usage_is_read_in_the_servers_format",
    "test_a_failure_in_mid_stream_has_the_servers_message",
    "test_an_image_is_sent_in_the_servers_format",
)


def _check_wire(server: str) -> Check:
    ids = [str(route.id) for route in ROUTES if str(route.id).startswith(f"{server}, ")]
    routes = " and ".join(id.removeprefix(f"{server}, ") for id in ids)
    file = "tests/llm/test_model_servers.py"
    tests = [f"{file}::{test}[{id}]" for test in WIRE_TESTS for id in ids]

    async def check() -> str:
        await run_tests(*tests)
        return f"tools, reasoning, usage, errors and images over {routes}"

    return check


for _server in SERVERS:
    row(AREA, _server, real="our adapter", played="the server's responses")(
        _check_wire(_server)
    )
