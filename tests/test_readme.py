import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire import call, say, serve_in_thread

EXAMPLE = re.search(r"```python\n(.*?)```", Path("README.md").read_text(), re.S).group(1)


@pytest.mark.thorough
def test_the_readme_example_runs_without_django():
    script = [call(("weather", '{"city": "Kyoto"}')), say("It is sunny in Kyoto.")]
    code = (
        EXAMPLE + "\nimport sys\nassert not any(m.startswith('django') for m in sys.modules)\n"
    )
    with serve_in_thread(script) as server:
        world = {**os.environ, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": server.url}
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=world, timeout=60
        )

    assert ran.returncode == 0, ran.stderr
    assert "Sunny and 21 degrees in Kyoto." in ran.stdout
    assert "weather took 0.0 s" in ran.stdout
    assert ran.stdout.splitlines()[-1].count("It is sunny in Kyoto.") == 1
