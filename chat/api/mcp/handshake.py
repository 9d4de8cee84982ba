"""Clients that speak a version of the protocol with a handshake, up to 2025-11-25.

They have a session: they say once what they can do, and answer questions and cancel requests by
messages of their own, which another web process may get. So a session's id says what its client
can do, a question's id names the approval, and a message in a chat has an id that follows from
that of its request.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import mcp_types as wire
from django.core import signing
from pydantic import ValidationError

from agents.runs import pubsub
from agents.web.api_errors import ApiError
from chat.api import calls, waiting
from chat.models import Message

from . import approval_forms
from .context import McpCall, Session

SALT = "chat.api.mcp.session"
QUESTION_PREFIX = "approval"


def open_session(call: McpCall, capabilities: Any) -> Session:
    """Return a new session for a client with these capabilities."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    # Without a mode it is the form, the only one at first.
    has_forms = isinstance(elicitation, dict) and ("form" in elicitation or not elicitation)
    claims = [call.caller.user.pk, has_forms, secrets.token_hex(8)]
    return Session(signing.dumps(claims, salt=SALT), has_forms)


def read_session(call: McpCall, token: str) -> Session | None:
    """Return the session with this id, if we opened it for this user."""
    try:
        user, has_forms, _nonce = signing.loads(token, salt=SALT)
    except signing.BadSignature:
        return None
    return Session(token, has_forms) if user == call.caller.user.pk else None


def message_id(session: Session, request_id: Any) -> str:
    """Return the id of the message that this request sends to a chat."""
    return hashlib.sha256(f"{session.token} {request_id!r}".encode()).hexdigest()[:32]


def dismissal_topic(run: int) -> str:
    """Return the topic that says when a client's user has closed a form without an answer."""
    return f"mcp.dismissal.{run}"


async def ask(call: McpCall, question: approval_forms.Form) -> None:
    """Ask the client's user, in the stream of the request that waits for it."""
    request = {
        "jsonrpc": "2.0",
        "id": f"{QUESTION_PREFIX}-{question.id}",
        "method": "elicitation/create",
        "params": question.request.params.model_dump(
            by_alias=True, mode="json", exclude_none=True
        ),
    }
    event = f"event: message\r\ndata: {json.dumps(request)}\r\n\r\n"
    body = {"type": "http.response.body", "body": event.encode(), "more_body": True}
    await call.send(body)


async def take_answer(call: McpCall, message: Mapping[str, Any]) -> None:
    """Apply a client's answer to a question; unknown ones are ignored."""
    prefix, _dash, id = str(message["id"]).partition("-")
    if prefix != QUESTION_PREFIX:
        return
    try:
        answer = wire.ElicitResult.model_validate(message.get("result"))
    except ValidationError:  # an error: it can't ask after all
        answer = wire.ElicitResult(action="cancel")
    if not await approval_forms.apply(call, id, answer):
        with suppress(ApiError):
            approval = await call.query(waiting.find, call.caller, id)
            await pubsub.publish(dismissal_topic(approval.run_id), "dismissed")


async def stop_question(call: McpCall, client_id: str) -> None:
    """Stop the run that answers the user's message with this id, if there is one."""
    sent = Message.objects.filter(author=call.caller.user, client_id=client_id)
    message = await sent.select_related("run").afirst()
    if message is not None and message.run is not None and message.run.is_live:
        await calls.stop(call.caller, message.run)
