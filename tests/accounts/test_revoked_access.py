"""Removed users are out at once: pages, sockets, runs and links."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Permission

from agents import runs
from agents.accounts.authentication import sessions
from agents.accounts.users import roles
from agents.models import Run
from agents.models.catalog.rights import Role
from agents.review import sharing
from project.asgi import application
from tests.accounts.test_roles import save_user
from tests.conftest import ORIGIN, TIMEOUT_SECONDS, as_async_user, tab, until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def close_code(socket):
    """Return the close code."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            frame = await socket.receive_output(TIMEOUT_SECONDS)
            if frame["type"] == "websocket.close":
                return frame["code"]


async def switched_off(user, administrator):
    await change_user(user, administrator, is_active="false")


async def change_user(user, administrator, **changes):
    """Change a user as the console does, in a process that also serves sockets."""
    browser = await as_async_user(administrator)
    typed = {"username": user.username, "role": "person", "is_active": "on", **changes}
    answer = await browser.post(f"/admin/auth/user/{user.pk}/change/", typed)
    assert answer.status_code == 302


async def test_disabling_an_account_closes_its_sockets(chat, person, administrator):
    async with tab(person, f"/ws/chat/{chat.pk}/") as socket:
        await switched_off(person, administrator)

        # No run is live, so the next periodic check would be in five minutes.
        assert await close_code(socket) == 4404


async def test_disabling_an_account_stops_its_runs_with_a_message(
    chat, person, administrator, scripted
):
    scripted(model=Endless())
    run = await sync_to_async(runs.prepare)(query="hello", topic=chat.topic, user=person)
    runs.launch(run)
    await until(run, "run_started")

    await switched_off(person, administrator)

    await run.arefresh_from_db()
    assert run.status == Run.Status.STOPPED
    assert run.detail == "The account of the user who started the run was disabled."


class Endless:
    async def stream(self, *about, **more):
        await asyncio.sleep(3600)
        yield


async def test_a_former_reviewer_loses_access_at_once(person, stranger, administrator):
    await sync_to_async(roles.set_role)(stranger, Role.REVIEWER)
    run = await Run.objects.acreate(user=person, topic="t.1", query="?", status="completed")
    async with tab(stranger, f"/ws/runs/{run.pk}/", query=b"over") as socket:
        await change_user(stranger, administrator, role="person")

        assert await close_code(socket) == 4404


async def test_a_removed_permission_applies_to_open_pages(person, stranger, administrator):
    """Also a permission granted directly, before roles existed."""
    right = await Permission.objects.aget(codename="review_runs")
    await stranger.user_permissions.aadd(right)
    run = await Run.objects.acreate(user=person, topic="t.1", query="?", status="completed")
    async with tab(stranger, f"/ws/runs/{run.pk}/", query=b"over") as socket:
        await stranger.user_permissions.aclear()
        await sync_to_async(sessions.recheck_access)(stranger.pk)

        assert await close_code(socket) == 4404


async def test_signing_out_closes_the_sockets_of_that_browser(chat, person):
    browser = await as_async_user(person)
    cookie = f"sessionid={browser.cookies['sessionid'].value}".encode()
    async with tab(person, f"/ws/chat/{chat.pk}/") as other:
        headers = [ORIGIN, (b"cookie", cookie)]
        socket = WebsocketCommunicator(application, f"/ws/chat/{chat.pk}/", headers)
        assert (await socket.connect())[0]

        await browser.post("/logout/")

        assert await close_code(socket) == 4404
        await other.send_to(text_data='{"type": "stop", "run": 1}')
        assert await other.receive_from(TIMEOUT_SECONDS)


def test_a_share_link_ends_with_its_creator(admin_client, person):
    run = Run.objects.create(user=person, topic="t.1", query="?", status="completed")
    token = sharing.create_link(run, person, "person", "1", is_masked=False)

    save_user(admin_client, person, is_active=None)

    assert sharing.open_link(token, None) is None
