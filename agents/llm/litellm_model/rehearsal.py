"""Keeps a rehearsed request from being sent."""

from contextvars import ContextVar
from importlib import import_module
from typing import Any

is_rehearsal: ContextVar[bool] = ContextVar("is_rehearsal", default=False)


async def block_request(request: Any) -> None:
    block_request_sync(request)


def block_request_sync(request: Any) -> None:
    if is_rehearsal.get():
        raise import_module("httpx").ConnectError("A rehearsal.", request=request)
