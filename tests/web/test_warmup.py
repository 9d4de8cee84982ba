"""What the first message needs is preloaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire import say, serve_in_thread

ROOT = Path(__file__).parents[2]
# In its own process, because everything is already loaded in this one.
FIRST_MESSAGE = """
import asyncio, json, os, ssl, sys, threading

os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django
django.setup()
from agents.llm import model_info
from agents.web.asgi import warmup
from agents.web.presentation import markdown
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel, warm_up_provider
from agents.tools.egress import transport

for step in warmup.STEPS:
    step()
warm_up_provider("anthropic").result()

loop, late = threading.main_thread(), []


class Noting:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is loop:
            late.append(name)


def noting(name):
    real = getattr(ssl.SSLContext, name)

    def note(self, *args, **options):
        late.append(name)
        return real(self, *args, **options)

    setattr(ssl.SSLContext, name, note)


sys.meta_path.insert(0, Noting())
noting("load_verify_locations")
noting("load_default_certs")


async def ask(llm, model):
    hello = [{"role": "user", "content": "Hello?"}]
    try:
        return [chunk async for chunk in llm.stream(model=model, messages=hello)]
    except Exception as error:
        return type(error).__name__


async def main(url):
    assert await ask(DirectModel("key", url), "openai/wire")
    model_info.context_window("openai/gpt-4.1")
    for language in ("python", "sql", "ts"):
        markdown.render_markdown(f"Hello\\n\\n```{language}\\nSELECT 1\\n```\\n")
    transport._ssl_context()
    await ask(LiteLLMModel("key", url.removesuffix("/v1")), "anthropic/claude-x")

asyncio.run(main(sys.argv[1]))
print(json.dumps(late))
"""


@pytest.mark.thorough
def test_the_first_message_imports_nothing_and_reads_no_certificates(tmp_path):
    with serve_in_thread(lambda request: say("Hello.")) as server:
        told = subprocess.run(
            [sys.executable, "-c", FIRST_MESSAGE, server.url],
            cwd=ROOT,
            env={"ASHIATO_DATA": str(tmp_path), "ASHIATO_MODEL": "demo", "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    assert told.returncode == 0, told.stderr[-2000:]
    late = json.loads(told.stdout.splitlines()[-1])

    assert late == []
    assert len(server.requests) == 2  # the dry run sent nothing
