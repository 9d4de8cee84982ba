"""What the page of an embedded chat gives to copy: elements of a page, and how to sign."""

import time
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext as _
from joserfc import jwt
from joserfc.jwk import OctKey

from agents.models import Embed
from agents.models.secret import UnreadableSecret
from agents.models.types import AnyUser
from agents.web.origin import origin_of

PREVIEW_SECONDS = 3600
SCRIPT = """\
<script src="{origin}/embed.js" data-embed="{key}" async></script>
"""
INLINE = """\
<div id="chat" style="height: 40rem"></div>
<script src="{origin}/embed.js" data-embed="{key}" data-target="#chat" async></script>
"""
FRAME = """\
<iframe src="{origin}/embed/{key}/" title="Chat" width="400" height="640"
  allow="clipboard-write"></iframe>
"""
PYTHON = """\
# pip install pyjwt
import os
import time

import jwt

token = jwt.encode(
    {"sub": "user-42", "name": "Ada", "exp": int(time.time()) + 3600},
    os.environ["CHAT_SECRET"],
    algorithm="HS256",
)
print(token)
"""
NODE = """\
import { createHmac } from "node:crypto";

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claims = { sub: "user-42", name: "Ada", exp: Math.floor(Date.now() / 1000) + 3600 };
const body = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
const hmac = createHmac("sha256", process.env.CHAT_SECRET);
console.log(`${body}.${hmac.update(body).digest("base64url")}`);
"""
SIGNED = """\
<script src="{origin}/embed.js" data-embed="{key}" data-user-token="TOKEN" async></script>
"""


@dataclass(frozen=True, slots=True)
class Example:
    """Code to copy."""

    key: str
    name: str
    code: str


def page_examples(request: HttpRequest, embed: Embed) -> list[Example]:
    """Return what a site's page needs: a button over the page, or the chat in it."""
    values = {"origin": origin_of(request), "key": embed.public_id}
    return [
        Example("script", _("Button"), SCRIPT.format(**values)),
        Example("inline", _("In the page"), INLINE.format(**values)),
        Example("frame", "iframe", FRAME.format(**values)),
    ]


def identity_examples(request: HttpRequest, embed: Embed) -> list[Example]:
    """Return how a site's server signs a token, and where its page puts it."""
    values = {"origin": origin_of(request), "key": embed.public_id}
    return [
        Example("python", "Python", PYTHON),
        Example("node", "Node.js", NODE),
        Example("signed", "HTML", SIGNED.format(**values)),
    ]


def preview_token(embed: Embed, user: AnyUser) -> str:
    """Return a token for an administrator's own preview, if users must be signed in."""
    if embed.allows_anonymous:
        return ""
    claims = {
        "sub": f"preview-{user.pk}",
        "name": user.get_username(),
        "exp": int(time.time()) + PREVIEW_SECONDS,
    }
    try:
        return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(embed.secret.reveal()))
    except (UnreadableSecret, ValueError):
        return ""
