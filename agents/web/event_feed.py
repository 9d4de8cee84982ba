"""A run's events as one reader may see them, saved ones first, then live."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from agents.access import audit, masking
from agents.access.masking import Masker, Session
from agents.engine.events import Event
from agents.models import Run
from agents.models.types import AnyUser
from agents.runs import pubsub


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads a run, and how to find out whether they still may.

    Another user's run is masked: text is slightly delayed, and its end comes with the event
    that ends its step.
    """

    is_masked: bool
    hides_private: bool
    hides_rules: bool
    may_still_read: Callable[[], Awaitable[bool]]
    recheck_seconds: float


def open_run(
    run: Run,
    user: AnyUser,
    session: Session,
    door: str,
    may_still_read: Callable[[], Awaitable[bool]],
    recheck_seconds: float | None = None,
) -> Reader:
    """Return how this user reads the run; the audit log notes it if it is another's."""
    audit.record_view(user, run, door)
    return Reader(
        is_masked=masking.is_masked_for(run, user, session),
        hides_private=masking.hides_private_parts(run, user),
        hides_rules=not masking.sees_rules(user),
        may_still_read=may_still_read,
        recheck_seconds=recheck_seconds or pubsub.IDLE_SECONDS,
    )


async def events(
    run: Run, reader: Reader, after: int = 0
) -> AsyncGenerator[Event | None, None]:
    """Yield events after this number to the end of the run; None when none came for a while.

    It ends early if the reader loses access.
    """
    masker = Masker() if reader.is_masked else None
    checked_at = time.monotonic()
    # Earlier text decides whether the new text is part of personal data.
    first = after if masker is None else 0
    async with aclosing(pubsub.events(run, first, reader.recheck_seconds)) as rows:
        async for row in rows:
            if row is None or time.monotonic() - checked_at > reader.recheck_seconds:
                if not await reader.may_still_read():
                    return
                checked_at = time.monotonic()
            if row is None:
                yield None
                continue
            masked = row if masker is None else await asyncio.to_thread(masker.event, row)
            visible = masking.visible_row(
                masked, hides_private=reader.hides_private, hides_rules=reader.hides_rules
            )
            if visible.seq > after:
                yield visible.value
