"""A connection to an MCP server: made, maintained and reconnected by one task."""

import asyncio
import contextvars
import logging
import math
import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Literal

from agents.engine.privacy import mask_secrets
from agents.engine.sentences import Sentence as _
from agents.tools.egress import Egress

from ..configuration.config import ServerConfig
from ..definition import ToolDefinition
from ..errors import ServerUnavailable
from .calls import CallTracker
from .health import Health

# The handshake of 2025 comes first: many servers only ask the user and the model in that way,
# even if they know a newer revision.
Variant = Literal["handshake", "newest", "sse"]
FIRST_VARIANT: Variant = "handshake"
ConnectionListener = Callable[["ConnectionLifecycle"], None]
HEARTBEAT_SECONDS = 60.0
IDLE_SECONDS = 900.0
BACKOFF_SECONDS = 0.5
MAX_DOUBLINGS = 8  # up to a pause of a minute
STABLE_SECONDS = 20.0
RETRY_WAIT_SECONDS = 2.0
RECHECK_SECONDS = 1.0
CLOSE_SECONDS = 10.0  # longer than a server gets to end by itself
MAX_ERROR_CHARS = 4_000

logger = logging.getLogger(__name__)


class ConnectionLifecycle:
    """One server. Only its owner task connects and disconnects; calls use its client."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        egress: Egress | None = None,
        listener: ConnectionListener | None = None,
        heartbeat: float = HEARTBEAT_SECONDS,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self.config = config
        self.health = Health()
        self.calls = CallTracker(config.name, self._mask)
        self._holder_count = 0
        self._variant: Variant = FIRST_VARIANT
        self._variants: list[Variant] = []
        self._first_reason = ""
        self._egress = egress or Egress()
        self._listener = listener
        self._heartbeat = heartbeat
        self._idle = idle
        self._used = time.monotonic()
        self._retry_at = 0.0
        self._is_closed = False
        self._mcp: Any = None
        self._client: Any = None
        self._sign_in_secrets: Collection[str] = ()
        self._owner: asyncio.Task[None] | None = None
        self._refresh_lock = asyncio.Lock()
        self._listed_at = 0.0
        self._tools_changed = asyncio.Event()
        self._health_changed = asyncio.Event()

    def start(self) -> None:
        """Start connecting, if that hasn't happened; doesn't wait."""
        self._used = time.monotonic()
        is_owned = self._owner is not None and not self._owner.done()
        if not is_owned and not self._is_closed:
            self._update_health(state="connecting")
            # Without the variables of the call that starts it: it serves others, too.
            self._owner = asyncio.create_task(
                self._maintain(),
                name=f"mcp {self.config.name}",
                context=contextvars.Context(),
            )
            self._owner.add_done_callback(self._on_owner_done)

    @property
    def is_busy(self) -> bool:
        """Whether it is in use or about to be used."""
        return self._holder_count > 0

    @property
    def used_at(self) -> float:
        return self._used

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep it from being stopped as unused, or to make room for another instance."""
        self._holder_count += 1
        try:
            yield
        finally:
            self._holder_count -= 1

    async def ready(self, *, again: bool = True) -> tuple[ToolDefinition, ...]:
        """Return the tools once connected; raise ServerUnavailable if that fails.

        `again` waits for another attempt, if one is due.
        """
        self.start()
        while self.health.state != "ready":
            if self.health.state == "stopped":
                self.start()  # its owner just left because it was unused
            self._health_changed.clear()
            if self._is_closed:
                raise ServerUnavailable(
                    _("%(name)s was disabled or reconfigured.", name=self.config.name)
                )
            is_due_soon = self._retry_at - time.monotonic() < RETRY_WAIT_SECONDS
            if self.health.state == "failed" and not (again and is_due_soon):
                reason = self.health.error
                raise ServerUnavailable(
                    _("%(name)s is failing: %(reason)s", name=self.config.name, reason=reason)
                )
            await self._health_changed.wait()
        return self.health.tools

    async def close(self) -> None:
        """Close for good; holders get an error."""
        self._is_closed = True
        if self._owner is not None:
            # Again if that took too long: a library may have swallowed the first one.
            while not self._owner.done():
                self._owner.cancel()
                await asyncio.wait([self._owner], timeout=CLOSE_SECONDS)
        self._update_health(state="stopped")

    async def _recheck(self, reason: str) -> str:
        """Return why a call failed, once the owner has checked; calls wait until then."""
        if self._is_closed:
            return reason
        self._update_health(state="connecting")
        self._health_changed.clear()
        self._tools_changed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(RECHECK_SECONDS):
                await self._health_changed.wait()
        return self.health.error or reason

    async def _maintain(self) -> None:
        # FastMCP in a thread and only when needed, because it takes a second or more.
        self._mcp = await asyncio.to_thread(import_module, "agents.tools.mcp.connection.client")
        self._used = time.monotonic()  # loading took a while, and someone waits
        failures = 0
        while not self._is_closed and not self._is_idle():
            began = time.monotonic()
            self._update_health(state="connecting")
            self._tools_changed.clear()
            client = self._mcp.create_client(
                self.config, self._egress, self._tools_changed.set, self.calls, self._variant
            )
            self._sign_in_secrets = self._mcp.sign_in_secrets(client)
            try:
                await self._keep_alive(client)
            except self._mcp.FAILURES as error:
                reason = await self._explain(error, client)
                if self._variant == FIRST_VARIANT:
                    # Another protocol is tried at once; if all fail, the first reason counts.
                    variants: list[Variant] = self._mcp.other_variants(client, error)
                    self._variants = [v for v in variants if v != self._variant]
                    self._first_reason = reason if self._variants else ""
                if self._variants:
                    self._variant = self._variants.pop(0)
                    continue
                self._variant = FIRST_VARIANT
                is_settled = time.monotonic() - began > STABLE_SECONDS
                failures = 0 if is_settled else failures + 1
                longest = BACKOFF_SECONDS * 2 ** (min(failures, MAX_DOUBLINGS) - 1)
                seconds = longest * random.uniform(0.5, 1) if failures else 0.0
                self._client = None
                self._retry_at = time.monotonic() + seconds
                self._update_health(
                    state="failed",
                    error=self._first_reason or reason,
                    restarts=self.health.restarts + 1,
                )
                if self._mcp.needs_sign_in(error):
                    return  # trying again can't help until the user has signed in
                await asyncio.sleep(seconds)
        self._update_health(state="stopped")

    def _on_owner_done(self, owner: asyncio.Task[None]) -> None:
        self._health_changed.set()
        if not owner.cancelled() and (error := owner.exception()):
            logger.error("The owner of an MCP connection failed.", exc_info=error)
            self._retry_at = math.inf
            self._update_health(state="failed", error=_("Something went wrong on the server."))

    async def _keep_alive(self, client: Any) -> None:
        """Stay connected, from the first tool list until the connection fails or is idle."""
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self.config.connect_timeout):
                await stack.enter_async_context(client)
                await self._list_tools(client)
            await stack.enter_async_context(
                self._mcp.watch_tools(client, self._tools_changed.set)
            )
            while not self._is_idle():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._heartbeat):
                        await self._tools_changed.wait()
                self._tools_changed.clear()
                async with asyncio.timeout(self.config.connect_timeout):
                    await self._list_tools(client)
            self._update_health(state="stopped")

    async def _list_tools(self, client: Any) -> None:
        started = time.perf_counter()
        tools = await self._mcp.list_tools(client)
        self._client = client
        self._variants = []
        self._first_reason = ""
        self._update_health(
            state="ready", error="", tools=tools, latency=time.perf_counter() - started
        )

    def _update_health(self, **changes: Any) -> None:
        old_health = self.health
        if changes.get("state", old_health.state) != old_health.state:
            changes["since"] = datetime.now(UTC)
        self.health = replace(old_health, **changes)
        self._health_changed.set()
        if self._listener is not None and self.health != old_health:
            self._listener(self)

    def _is_idle(self) -> bool:
        return not self.is_busy and time.monotonic() - self._used > self._idle

    async def _explain(self, error: Exception, client: Any) -> str:
        return self._mask(await self._mcp.explain(error, client))

    def _mask(self, text: str) -> str:
        return text.map(self._mask_text) if isinstance(text, _) else self._mask_text(text)

    def _mask_text(self, text: str) -> str:
        # Truncated first, because searching megabytes for secrets blocks everyone for seconds.
        # And again, because the first cut may have left half a secret.
        secrets = (*self.config.secrets, *self._sign_in_secrets)
        return mask_secrets(text[: 2 * MAX_ERROR_CHARS], *secrets)[:MAX_ERROR_CHARS]
