import subprocess
import sys

import pytest

from agents.llm.windows import UNKNOWN, window


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o"])
def test_a_listed_model_has_its_window_with_and_without_its_provider(model):
    assert window(model) == 128_000


def test_a_model_that_nobody_listed_gets_a_careful_guess():
    assert window("openai/my-own-model") == UNKNOWN


def test_looking_it_up_does_not_import_litellm():
    code = "import sys; from agents.llm import windows; windows.window('x'); "
    code += "print('litellm' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ran.stdout.strip() == "False"
