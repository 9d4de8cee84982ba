"""Creates something once per Idempotency-Key, however often a program asks.

Saved are a digest of the request and the id of what it created, never a response: the same
request is answered with the same object, as it is then.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from ninja import Status

from agents.db import claims, database
from agents.web.api_errors import ApiError
from chat.api.calls import Caller
from chat.models import ApiRequest

from .access import RestRequest

HEADER = "Idempotency-Key"
MAX_KEY_CHARS = 255
# No request takes so long: its server has died.
ABANDONED_AFTER = timedelta(minutes=5)

Create = Callable[..., Awaitable[int]]
# Returns the response's value for the id of what was created.
Load = Callable[[RestRequest, int], Any]


def creates(load: Load) -> Callable[[Create], Callable[..., Awaitable[Status[Any]]]]:
    """Answer an operation that returns the id of what it created: 201, with that object."""

    def decorate(create: Create) -> Callable[..., Awaitable[Status[Any]]]:
        @wraps(create)
        async def operation(request: RestRequest, **values: Any) -> Status[Any]:
            # A client that disconnects now finds its answer by asking again.
            task = asyncio.create_task(_create_once(create, request, values))
            _creating.add(task)
            task.add_done_callback(_creating.discard)
            pk = await asyncio.shield(task)
            return Status(201, await database.run(load, request, pk))

        operation.is_idempotent = True  # type: ignore[attr-defined]  # for the document
        return operation

    return decorate


_creating: set[asyncio.Task[int]] = set()


async def _create_once(create: Create, request: RestRequest, values: dict[str, Any]) -> int:
    key = request.headers.get(HEADER, "")
    if not key:
        return await create(request, **values)
    if len(key) > MAX_KEY_CHARS:
        sentence = _("An Idempotency-Key can have up to %(most)d characters.")
        raise ApiError(422, sentence % {"most": MAX_KEY_CHARS}, "invalid_idempotency_key")
    digest = await asyncio.to_thread(_digest, request)
    row = await database.run(_claim, request.auth, key, digest)
    if row.reference is not None:
        return row.reference
    try:
        pk = await create(request, **values)
    except BaseException:
        # Nothing was created, so the same key may try again.
        await database.run(row.delete)
        raise
    row.reference = pk
    await database.run(row.save, update_fields=["reference"])
    return pk


def client_id(request: RestRequest) -> str:
    """Return the id of a message sent with an Idempotency-Key; empty without one."""
    key = request.headers.get(HEADER, "")
    return _hash(f"{request.api_key.pk}:{key}") if key else ""


def _digest(request: RestRequest) -> str:
    """Return a digest of the address and of the body, which for files is their content."""
    digest = hashlib.sha256(f"{request.method} {request.path}\n".encode())
    if request.content_type != "multipart/form-data":
        digest.update(request.body)
        return digest.hexdigest()
    for name, values in sorted(request.POST.lists()):
        digest.update(repr((name, values)).encode(errors="replace"))
    for name, file in sorted(request.FILES.items()):
        assert isinstance(file, UploadedFile)
        digest.update(repr((name, file.name, file.size)).encode(errors="replace"))
        for chunk in file.chunks():
            digest.update(chunk)
        file.seek(0)
    return digest.hexdigest()


def _claim(caller: Caller, key: str, digest: str) -> ApiRequest:
    """Return the request's row: a new one, or of the same request, with what it created."""
    key_digest = _hash(key)
    current_time = timezone.now()
    forgotten = current_time - ApiRequest.REMEMBERED_FOR
    rows = ApiRequest.objects.filter(api_key=caller.key, key_digest=key_digest)
    rows.filter(created_at__lt=forgotten).delete()
    try:
        with transaction.atomic():
            return ApiRequest.objects.create(
                api_key=caller.key, key_digest=key_digest, digest=digest
            )
    except IntegrityError:
        row = rows.first()
    if row is not None and row.digest != digest:
        raise ApiError(
            422,
            _("This Idempotency-Key was used for another request. Use a new one."),
            "idempotency_key_reused",
        )
    if row is not None and (row.reference is not None or _take_over(row, current_time)):
        return row
    raise ApiError(
        409,
        _("A request with this Idempotency-Key is still in progress. Try again in a moment."),
        "request_in_progress",
    )


def _take_over(row: ApiRequest, current_time: datetime) -> bool:
    """Return whether this request goes on where one ended that never answered."""
    is_abandoned = row.created_at < current_time - ABANDONED_AFTER
    return is_abandoned and claims.compare_and_set(row, "created_at", current_time)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
