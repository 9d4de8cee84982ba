"""Who a visitor is: an anonymous token, or a user whom the site has signed in."""

import base64
import json
import time

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from agents.access.names import display_name
from agents.memory.policy import is_excluded
from agents.models import EmbedVisitor
from chat.embedding import visitors
from chat.embedding.visitors import MAX_NEW_PER_ADDRESS, Identity
from chat.errors import MessageRejected
from tests.conftest import frames_until

from .conftest import SITE, ask, close_code, frame, new_token, sign

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
FINISHED = 'class="run" data-status="completed"'
UNSIGNED = 4401


def unsigned(**claims):
    """Return a token without a signature."""
    parts = ({"alg": "none"}, {"sub": "u1", "exp": int(time.time()) + 60} | claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts)
    return ".".join(part.decode().rstrip("=") for part in encoded) + "."


async def test_a_signed_user_has_the_same_conversation_on_each_device(embed):
    async with frame(embed, sign(embed, name="Ada", email="ada@example.com")) as page:
        await ask(page)
        await frames_until(page, FINISHED)
    async with frame(embed, sign(embed, name="Ada L.")) as page:
        shown = "".join(await frames_until(page, "composer-state"))

    visitor = await EmbedVisitor.objects.select_related("user__profile").aget()
    assert "6 * 7" in shown
    assert (visitor.subject, visitor.email) == ("u1", "ada@example.com")
    assert visitor.user.email == ""  # with which somebody could sign in
    assert display_name(visitor.user) == "Ada"


@pytest.mark.parametrize(
    "seconds", [{"exp": -5}, {"exp": 30 * 86_400}, {"nbf": 3600}], ids=["over", "long", "early"]
)
async def test_tokens_end_soon(seconds, embed):
    times = {name: int(time.time()) + value for name, value in seconds.items()}

    assert await close_code(embed, sign(embed, **times)) == UNSIGNED


WRONG_CLAIMS = {
    "no end": {"exp": None},
    "a word as end": {"exp": "soon"},
    "no end in sight": {"exp": float("inf")},
    "an endless number": {"exp": 10**400},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "number as subject": {"sub": 7},
    "long subject": {"sub": "x" * 256},
    "invisible character": {"sub": "u\u200b1"},
    "NUL": {"sub": "u1\0"},
    "spaces around it": {"sub": " u1"},
    "two spaces": {"sub": "u  1"},
    "another composition": {"sub": "e\u0301"},
    "another audience": {"aud": "another"},
    "other audiences": {"aud": ["another"]},
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS)
async def test_tokens_need_a_subject_and_an_end(claims, embed):
    assert await close_code(embed, sign(embed, **claims)) == UNSIGNED


async def test_forged_tokens_are_refused(embed, make_embed):
    other = await sync_to_async(make_embed)("Other", audience="signed")
    good = sign(embed)
    head, body, signature = good.split(".")
    changed = base64.urlsafe_b64encode(b'{"sub":"admin","exp":9999999999}').decode().rstrip("=")
    forged = [
        unsigned(),
        unsigned() + signature,
        f"{head}.{changed}.{signature}",
        f"{head}.{body}.",
        sign(other),
        sign(embed, secret="a-guess-that-is-long-enough-for-a-key"),
        sign(embed, algorithm="HS512"),
        "x" * 43 + "!",
        "..",
        "a.b.c",
    ]
    for token in forged:
        assert await close_code(embed, token) == UNSIGNED, token


async def test_a_token_may_name_its_embedded_chat(embed):
    async with frame(embed, sign(embed, aud=embed.public_id)) as page:
        assert await page.receive_nothing()


async def test_each_chat_says_who_can_use_it(make_embed):
    anonymous = await sync_to_async(make_embed)("Open")
    signed = await sync_to_async(make_embed)("Closed", audience="signed")

    assert await close_code(anonymous, sign(anonymous)) == UNSIGNED
    assert await close_code(signed, new_token()) == UNSIGNED
    assert await close_code("unknown", new_token()) == 4403


async def test_a_token_is_of_no_use_in_another_chat(make_embed):
    first = await sync_to_async(make_embed)("First")
    second = await sync_to_async(make_embed)("Second")
    token = new_token()
    async with frame(first, token) as page:
        await ask(page)
        await frames_until(page, FINISHED)
    async with frame(second, token) as page:
        assert await page.receive_nothing()


async def test_frames_are_ours(embed):
    from channels.testing import WebsocketCommunicator

    from project.asgi import application

    path = f"/ws/embed/{embed.public_id}/"
    protocols = ["ashiato.embed", new_token()]
    for origin in (SITE.encode(), b"null"):
        socket = WebsocketCommunicator(application, path, [(b"origin", origin)], protocols)
        assert not (await socket.connect())[0]
    ours = (b"origin", b"http://testserver")
    for wrong in ([], ["ashiato.embed"], ["graphql-ws", new_token()]):
        socket = WebsocketCommunicator(application, path, [ours], wrong)
        assert not (await socket.connect())[0]


async def test_a_disabled_account_can_ask_nothing(embed):
    token = new_token()
    async with frame(embed, token) as page:
        await ask(page)
        await frames_until(page, FINISHED)
    await User.objects.filter(embed_visit__embed=embed).aupdate(is_active=False)

    assert await close_code(embed, token) == 4403


def test_only_signed_visitors_have_a_memory(embed):
    anonymous = visitors.find_or_create(embed, Identity(digest="d"), "192.0.2.1")
    signed = visitors.find_or_create(embed, Identity(subject="u1"), "192.0.2.1")

    assert is_excluded(anonymous.user_id)
    assert not is_excluded(signed.user_id)


def test_new_visitors_are_limited_by_their_address(embed):
    for number in range(MAX_NEW_PER_ADDRESS):
        visitors.find_or_create(embed, Identity(digest=f"d{number}"), "192.0.2.1")
    with pytest.raises(MessageRejected):
        visitors.find_or_create(embed, Identity(digest="another"), "192.0.2.1")

    visitors.find_or_create(embed, Identity(digest="d0"), "192.0.2.1")  # not a new one
    visitors.find_or_create(embed, Identity(digest="elsewhere"), "192.0.2.2")
    visitors.find_or_create(embed, Identity(subject="u1"), "192.0.2.1")  # an office of the site
