"""Cards of saved memories follow their user's decision on every open page."""

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from agents import runs
from agents.models import Memory
from chat import messages
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_an_undo_appears_on_every_open_page(person, async_client):
    message = await messages.submit(None, person, "Remember that I live in Osaka", "a")
    await runs.wait(message.run)
    memory = await Memory.objects.aget()
    await sync_to_async(async_client.force_login)(person)
    async with tab(person, f"/ws/chat/{message.session_id}/") as page:
        await frames_until(page, 'data-state="saved"')

        await async_client.post(reverse("people:undo_memory", args=[memory.pk]))

        frames = await frames_until(page, 'data-state="removed"')
    assert f'id="memory-{memory.pk}"' in frames[-1]
