"""Calls that need approval: a visitor waits, and the approver decides."""

import pytest

from agents.models import Approval
from tests.conftest import as_async_user, frames_until, select

from .conftest import ask, frame, new_token

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_the_answer_arrives_when_the_approver_has_decided(embed, person, agent):
    embed.approver = person
    await embed.asave()
    agent.auto_execute_tools = False
    await agent.asave()
    client = await as_async_user(person)
    async with frame(embed, new_token()) as page:
        await ask(page, "What is 12.5% of 3480?")
        (*_others, shown) = await frames_until(page, "Waiting for approval.")
        inbox = await client.get("/approvals/")
        approval = await Approval.objects.aget()
        decision = {"verdict": "approve", f"digest-{approval.pk}": approval.digest}
        decided = await client.post(f"/approvals/{approval.pk}/", decision)
        await frames_until(page, "<strong>435</strong>")

    assert "3480" not in shown  # what it would be called with
    assert select(inbox, ".buttons")
    assert embed.name in inbox.text
    assert decided.status_code == 302
