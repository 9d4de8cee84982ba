"""Circuit breakers tell accounts apart without knowing their keys."""

import pytest

from agents.llm.configured_model import ConfiguredModel
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel


@pytest.mark.parametrize("client", [DirectModel, LiteLLMModel])
def test_a_key_makes_an_account_of_its_own_and_is_not_in_its_name(client):
    url = "https://gateway.example/v1"
    first, second = client("sk-first", url), client("sk-second", url)

    assert first.account == client("sk-first", url).account != second.account
    assert "sk" not in first.account
    assert client().account == ""
    assert ConfiguredModel(first, "openai/gpt").account == first.account
