"""Push notifications of A2A: delivered, retried, and never to a private address."""

import asyncio
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig,
)
from a2a.utils import errors
from django.contrib.auth.models import User

from agents.access import api_keys
from agents.db import database
from agents.engine.testing import Says
from agents.models import ApiKey, PushTarget
from chat.api import push_deliveries
from chat.api.a2a import tasks
from tests.chat.api.a2a.conftest import message, send, task_of
from tests.chat.api.approved_tool import THANKS, WRITE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
def receiver(settings):
    """A program that is told; `status` is what it answers."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((dict(self.headers), json.loads(body)))
            self.send_response(server.status)
            self.end_headers()

        def log_message(self, *about):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.status = 204
    server.received = received
    server.url = f"http://127.0.0.1:{server.server_port}/told?key=k"
    settings.EGRESS_ALLOW = [f"127.0.0.1:{server.server_port}"]
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def with_target(text, url, **fields):
    request = message(text)
    config = TaskPushNotificationConfig(url=url, **fields)
    request.configuration.task_push_notification_config.CopyFrom(config)
    return request


async def deliver():
    return await asyncio.to_thread(push_deliveries.deliver_due)


async def test_a_program_is_told_when_its_task_needs_input_and_ends(
    connect, scripted, letter, receiver
):
    scripted(WRITE, THANKS)
    authentication = AuthenticationInfo(scheme="Bearer", credentials="s3cret")
    request = with_target(
        "Write to her.", receiver.url, id="hook", token="t0ken", authentication=authentication
    )

    async with connect() as client:
        task, _state, _text = task_of([update async for update in client.send_message(request)])
        waiting = await deliver()
        await send(client, "approve", task=task.id)
        ended = await deliver()
        again = await deliver()

    assert (waiting, ended, again) == (1, 1, 0)
    (headers, first), (_headers, second) = receiver.received
    assert headers["X-A2A-Notification-Token"] == "t0ken"
    assert headers["Authorization"] == "Bearer s3cret"
    assert first["task"]["id"] == task.id
    assert first["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert second["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert second["task"]["artifacts"][0]["parts"][0]["text"] == "It is written."


async def test_a_failed_notification_is_tried_again_and_given_up(
    connect, scripted, receiver, monkeypatch
):
    scripted(Says(answer="Hello."))
    receiver.status = 500

    async with connect() as client:
        request = with_target("Hello", receiver.url)
        assert [update async for update in client.send_message(request)]
    first = await deliver()
    waiting = await deliver()
    for _attempt in push_deliveries.BACKOFF:
        await PushTarget.objects.aupdate(next_at=None)
        await deliver()

    target = await PushTarget.objects.aget()
    assert (first, waiting) == (0, 0)
    assert len(receiver.received) == 1 + len(push_deliveries.BACKOFF)
    assert target.last_error == "HTTP 500"
    assert not await PushTarget.objects.due().aexists()


@pytest.mark.parametrize("end", ["key revoked", "account disabled"])
async def test_whose_key_has_ended_is_told_nothing_more(connect, scripted, receiver, end):
    scripted(Says(answer="Hello."))

    async with connect() as client:
        request = with_target("Hello", receiver.url)
        assert [update async for update in client.send_message(request)]
    if end == "key revoked":
        await database.run(api_keys.revoke, ApiKey.objects.all())
    else:
        await User.objects.aupdate(is_active=False)

    assert await deliver() == 0
    assert receiver.received == []


async def test_one_that_cannot_be_sent_holds_up_no_other(
    connect, scripted, receiver, monkeypatch
):
    scripted(Says(answer="Hello."), Says(answer="Hello again."))
    broken, fine = [with_target(text, receiver.url) for text in ("Hello", "Hello again")]

    async with connect() as client:
        assert [update async for update in client.send_message(broken)]
        assert [update async for update in client.send_message(fine)]
    first = (await PushTarget.objects.order_by("pk").afirst()).run_id
    build = tasks.notification_of

    def notification_of(run):
        if run.pk == first:
            raise FileNotFoundError
        return build(run)

    monkeypatch.setattr(tasks, "notification_of", notification_of)

    assert await deliver() == 1
    assert [body["task"]["id"] for _headers, body in receiver.received] != [str(first)]


async def test_a_private_address_is_refused(connect, scripted, receiver, settings):
    settings.EGRESS_ALLOW = []
    scripted(Says(answer="Hello."))

    async with connect() as client:
        request = with_target("Hello", receiver.url)
        assert [update async for update in client.send_message(request)]
    await deliver()

    assert receiver.received == []
    assert (await PushTarget.objects.aget()).last_error


async def test_configurations_are_read_and_deleted_by_their_user_alone(
    connect, scripted, letter, stranger
):
    scripted(WRITE)

    async with connect() as client, connect(user=stranger) as theirs:
        task, _state, _text = task_of(await send(client, "Write to her."))
        config = TaskPushNotificationConfig(
            id="hook", task_id=task.id, url="https://example.org/told", token="t0ken"
        )
        created = await client.create_task_push_notification_config(config)
        read = await client.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id=task.id, id="hook")
        )
        listing = ListTaskPushNotificationConfigsRequest(task_id=task.id)
        listed = await client.list_task_push_notification_configs(listing)
        deletion = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="hook")
        for call in (
            theirs.create_task_push_notification_config(config),
            theirs.list_task_push_notification_configs(listing),
            theirs.delete_task_push_notification_config(deletion),
        ):
            with pytest.raises(errors.TaskNotFoundError):
                await call
        await client.delete_task_push_notification_config(deletion)

    assert (created.id, read.url) == ("hook", "https://example.org/told")
    assert not read.token  # secrets aren't displayed again
    assert len(listed.configs) == 1
    assert not await PushTarget.objects.aexists()


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "ftp://example.org"},
        {"url": "https://example.org", "token": "two\r\nlines"},
        {"url": "https://example.org", "id": "x" * 65},
    ],
)
async def test_an_invalid_target_is_refused(connect, scripted, letter, fields):
    scripted(WRITE)

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))
        with pytest.raises(errors.InvalidParamsError):
            await client.create_task_push_notification_config(
                TaskPushNotificationConfig(task_id=task.id, **fields)
            )
