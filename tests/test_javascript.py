"""Runs the tests of JavaScript without a page, by Node.js and its own test runner."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests" / "javascript").glob("*.test.mjs"))


def test_javascript_without_a_page(tmp_path: Path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js isn't installed (Debian: apt-get install nodejs).")
    # Node.js before 22.7 learns only from a package.json above it that a .js file is a module.
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for folder in ("static/js", "tests/javascript"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    files = [path.relative_to(ROOT) for path in TESTS]

    run = subprocess.run(
        [node, "--test", *files], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert run.returncode == 0, run.stdout + run.stderr
