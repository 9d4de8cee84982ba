import secrets
import time
from contextlib import asynccontextmanager

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Group
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.conftest import ORIGIN

SITE = "https://www.example.com"


@pytest.fixture
def make_embed(agent):
    from agents.models import Embed

    def make(name="Website", **values):
        group = Group.objects.create(name=f"Visitors: {name}")
        embed = Embed(**{"name": name, "agent": agent, "origins": SITE} | values, group=group)
        embed.plain_secret = embed.new_secret()
        embed.save()
        return embed

    return make


@pytest.fixture
def embed(make_embed):
    return make_embed(audience="both")


def new_token():
    return secrets.token_urlsafe(32)


def sign(embed, *, secret=None, algorithm="HS256", **claims):
    """Return a token as a site makes it."""
    values = {"sub": "u1", "exp": int(time.time()) + 3600} | claims
    kept = {name: value for name, value in values.items() if value is not None}
    key = OctKey.import_key(secret or embed.plain_secret)
    return jwt.encode({"alg": algorithm}, kept, key, algorithms=[algorithm])


async def connect(embed, credential, query=b"", headers=(ORIGIN,)):
    """Open a frame's socket; return it and how it was closed, if it was."""
    from project.asgi import application

    path = f"/ws/embed/{getattr(embed, 'public_id', embed)}/"
    protocols = ["ashiato.embed", credential]
    socket = WebsocketCommunicator(application, path, [*headers], protocols)
    socket.scope["query_string"] = query
    connected, _code = await socket.connect()
    assert connected
    return socket


async def close_code(embed, credential, **options):
    """Return the code with which a frame is refused."""
    socket = await connect(embed, credential, **options)
    closed = await socket.receive_output(10)
    assert closed["type"] == "websocket.close", closed
    return closed["code"]


@asynccontextmanager
async def frame(embed, credential, query=b""):
    """Open the frame of an embedded chat."""
    socket = await connect(embed, credential, query)
    try:
        yield socket
    finally:
        await socket.disconnect()


async def ask(socket, text="6 * 7", client_id="a", **options):
    message = {"type": "message", "text": text, "client_id": client_id}
    await socket.send_json_to(message | options)
