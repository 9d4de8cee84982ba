"""Installs the packages under var/compat, each set in an environment of its own."""

import asyncio
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from tests.compat.rows import NotTried

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
HOME = ROOT / "var" / "compat"
INSTALL_SECONDS = 1200

PYTHON_SETS = {
    "uv": ("uv==0.13.8",),
    "phoenix": ("arize-phoenix==20.26.1",),
    "proxy": ("litellm[proxy]==1.106.2",),
    "schemathesis": ("schemathesis==4.32.5",),
    "langchain": ("langchain-openai==1.6.7",),
    "llama-index": ("llama-index-llms-openai-like==0.8.1",),
    "pydantic-ai": ("pydantic-ai-slim[openai]==2.68.0",),
    # What the kit's pyproject.toml asks for.
    "a2a-tck": (
        *("pytest==9.2.0", "pytest-asyncio==1.5.0", "pytest-json-report==1.5.0"),
        *("httpx", "requests", "responses", "deepdiff", "jsonschema", "packaging", "PyYAML"),
        *("python-dotenv", "grpcio", "grpcio-tools", "grpcio-status", "proto-plus"),
        *("protobuf", "googleapis-common-protos", "pyOpenSSL", "aiohttp"),
    ),
}
# Servers that users start with uvx or npx, which install them themselves.
UVX_PACKAGES = (
    "mcp-server-fetch==2026.10.24",
    "mcp-server-git==2026.10.19",
    "mcp-server-time==2026.10.19",
)
NODE = "24.21.0"  # as a package of npm
NODE_PACKAGES = HERE / "package.json"
NPM_REASON = re.compile(r"^npm error (?:notarget|404) +(.+)", re.MULTILINE)


def version(package: str) -> str:
    """Return the pinned version of a package from either registry."""
    for pinned in (*UVX_PACKAGES, *(each for specs in PYTHON_SETS.values() for each in specs)):
        name, _, number = pinned.partition("==")
        if name.partition("[")[0] == package:
            return number
    return str(json.loads(NODE_PACKAGES.read_text())["dependencies"][package])


def installed_version(package: str) -> str:
    """Return the version of a package that the product itself uses."""
    return metadata.version(package)


@cache
def python_programs(name: str) -> Path:
    """Return the folder with the programs of a set, installed at first."""
    folder = HOME / name
    stamp = folder / "installed.txt"
    wanted = "\n".join(PYTHON_SETS[name])
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(folder))
        pip = str(folder / "bin" / "pip")
        _run(pip, "install", "--quiet", "--disable-pip-version-check", *PYTHON_SETS[name])
        stamp.write_text(wanted)
    return folder / "bin"


async def node_packages(name: str, *packages: str, builds: Sequence[str] | None = None) -> Path:
    """Install packages of npm, once; return the folder in which scripts find them.

    With `builds` they are a whole product: packages that it doesn't name are left out, and only
    these run install scripts, which compile or fetch programs.
    """
    path = node_path()
    declared = json.loads(NODE_PACKAGES.read_text())
    wanted = {
        "private": True,
        "type": "module",
        "dependencies": {package: declared["dependencies"][package] for package in packages},
        # Newer versions of these need packages that the registry doesn't have.
        "overrides": declared["overrides"],
    }
    folder = HOME / name
    stamp = folder / "installed.txt"
    options = ("--loglevel=error", "--prefix", str(folder))
    product = () if builds is None else ("--legacy-peer-deps", "--ignore-scripts")
    text = json.dumps([wanted, product, builds])
    if stamp.exists() and stamp.read_text() == text:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps(wanted))
    (folder / "package-lock.json").unlink(missing_ok=True)
    await asyncio.to_thread(_run, "npm", "install", *options, *product, PATH=path)
    if builds:
        await asyncio.to_thread(_run, "npm", "rebuild", *options, *builds, PATH=path)
    stamp.write_text(text)
    return folder


@cache
def node_path() -> str:
    """Return a PATH with a Node.js that all clients accept, installed if ours is older."""
    found = os.environ["PATH"]
    if (node := shutil.which("node")) is None:
        raise NotTried("Node.js isn't installed.")
    done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60)
    if int(done.stdout.strip().lstrip("v").partition(".")[0]) >= int(NODE.partition(".")[0]):
        return found
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = f"node-{sys.platform}-{machine}"
    folder = HOME / f"node-{NODE}"
    binaries = folder / "node_modules" / package / "bin"
    if not binaries.exists():
        npm = ("npm", "install", "--silent", "--no-save", "--prefix", str(folder))
        _run(*npm, f"{package}@{NODE}")
    return f"{binaries}:{found}"


def _run(*command: str, **variables: str) -> None:
    try:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            env=os.environ | variables,
        )
    except FileNotFoundError as error:
        raise NotTried(f"{command[0]} isn't installed.") from error
    except subprocess.CalledProcessError as error:
        output = error.stderr or error.stdout
        lines = NPM_REASON.findall(output) or output.strip().splitlines()[-1:] or ["no output"]
        raise NotTried(f"Installing failed: {lines[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise NotTried(f"Installing took longer than {INSTALL_SECONDS} s.") from error
