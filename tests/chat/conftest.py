import pytest


@pytest.fixture
def chat(person):
    from chat.models import ChatSession

    return ChatSession.objects.create(user=person, title="Sums")
