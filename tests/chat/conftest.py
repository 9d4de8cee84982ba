import asyncio

import pytest


@pytest.fixture
def chat(person):
    from chat.models import ChatSession

    return ChatSession.objects.create(user=person, title="Sums")


class Held:
    """A model that sends one token, and the rest when released."""

    def __init__(self):
        self.let_go = asyncio.Event()
        self.requests = []

    async def stream(self, **request):
        from agents.engine.testing import delta

        self.requests.append([message["content"] for message in request["messages"][1:]])
        yield delta(content="Well, ")
        await self.let_go.wait()
        yield delta(content=f"that was {len(self.requests)}.", finish_reason="stop")


@pytest.fixture
async def model(monkeypatch):
    """A model that waits in the middle of its answer until the test releases it."""
    from agents.catalog.language_models import model_clients

    model = Held()
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    return model
