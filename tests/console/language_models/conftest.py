import pytest

from agents.console.language_models import listed_models
from agents.llm.discovery.model_list import ModelsNotListed, list_models


@pytest.fixture(autouse=True)
def only_local_lists(monkeypatch):
    """No provider is asked for its models, only servers of these tests."""

    async def list_local(settings):
        if "127.0.0.1" not in (settings.base_url or ""):
            raise ModelsNotListed
        return await list_models(settings)

    monkeypatch.setattr(listed_models, "list_models", list_local)
