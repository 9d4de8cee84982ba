import asyncio
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import Client

ORIGIN = (b"origin", b"http://testserver")


@pytest.fixture
def person(django_user_model):
    return django_user_model.objects.create_user("ada", password="a long password")


@pytest.fixture
def stranger(django_user_model):
    return django_user_model.objects.create_user("eve", password="a long password")


@pytest.fixture
def administrator(django_user_model):
    return django_user_model.objects.create_superuser("root", password="a long password")


@pytest.fixture
def agent(db):
    """The agent of a first visit, with its three tools and the samples they read."""
    from django.core.management import call_command

    from agents.models import Agent

    call_command("seed_demo", verbosity=0)
    return Agent.objects.get()


@pytest.fixture
async def workshop():
    """Whatever runs when a test ends is stopped, and its writer with it."""
    from agents import runs

    yield
    await runs.shut_down()


@asynccontextmanager
async def tab(user, path, *, headers=(ORIGIN,)):
    """One browser tab, signed in, on a socket."""
    from project.asgi import application

    client = Client()
    await sync_to_async(client.force_login)(user)
    cookie = f"sessionid={client.cookies['sessionid'].value}".encode()
    socket = WebsocketCommunicator(application, path, [*headers, (b"cookie", cookie)])
    connected, code = await socket.connect()
    assert connected, code
    try:
        yield socket
    finally:
        await socket.disconnect()


async def frames_until(socket, words, timeout=10):
    """Everything the tab is sent until a frame holds these words."""
    frames = []
    async with asyncio.timeout(timeout):
        while not frames or words not in frames[-1]:
            frames.append(await socket.receive_from(timeout))
    return frames
