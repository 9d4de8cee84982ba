"""The connection to one MCP server: made, maintained and reconnected by one task."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Literal

from agents.engine.errors import ToolError
from agents.engine.privacy import mask_secrets
from agents.engine.tool import ToolResult, timeout_message, uncertain_message
from agents.tools.egress import Egress

from .config import ServerConfig
from .definition import ToolDefinition, digest

ConnectionState = Literal["connecting", "ready", "failed", "stopped"]
ConnectionListener = Callable[["Connection"], None]

HEARTBEAT_SECONDS = 60.0
IDLE_SECONDS = 900.0
BACKOFF_SECONDS = 0.5
MAX_DOUBLINGS = 8  # up to a pause of a minute
STABLE_SECONDS = 20.0
RETRY_WAIT_SECONDS = 2.0
RECHECK_SECONDS = 1.0
MAX_ERROR_CHARS = 4_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A connection's status; `tools` are those listed last."""

    state: ConnectionState = "stopped"
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    error: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    latency: float | None = None
    restarts: int = 0


class ServerUnavailable(ToolError):
    """The server isn't available."""


class Connection:
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
        self._egress = egress or Egress()
        self._listener = listener
        self._heartbeat = heartbeat
        self._idle = idle
        self._used = time.monotonic()
        self._retry_at = 0.0
        self._is_closed = False
        self._mcp: Any = None
        self._client: Any = None
        self._owner: asyncio.Task[None] | None = None
        self._refreshing = asyncio.Lock()
        self._listed_at = 0.0
        self._look = asyncio.Event()
        self._moved = asyncio.Event()

    def start(self) -> None:
        """Start connecting, if that hasn't happened; doesn't wait."""
        self._used = time.monotonic()
        is_owned = self._owner is not None and not self._owner.done()
        if not is_owned and not self._is_closed:
            self._update_health(state="connecting")
            self._owner = asyncio.create_task(self._maintain(), name=f"mcp {self.config.name}")
            self._owner.add_done_callback(self._on_owner_done)

    async def ready(self, *, again: bool = True) -> tuple[ToolDefinition, ...]:
        """Return the tools once connected; raise ServerUnavailable if that fails.

        `again` waits for another attempt, if one is due.
        """
        self.start()
        while self.health.state != "ready":
            if self.health.state == "stopped":
                self.start()  # its owner just left because it was unused
            self._moved.clear()
            if self._is_closed:
                raise ServerUnavailable(f"{self.config.name} was disabled or reconfigured.")
            if self.health.state == "failed" and not (again and self._retries_soon()):
                reason = self.health.error
                raise ServerUnavailable(f"{self.config.name} is failing: {reason}")
            await self._moved.wait()
        return self.health.tools

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        pinned: str = "",
    ) -> ToolResult:
        """Call a tool; any failure is a result.

        Cancelling this cancels it there. With the digest of an accepted definition, the tool is
        only called if the server still describes it that way: not every server announces
        changes.
        """
        seconds = seconds or self.config.call_timeout
        is_sent = False
        try:
            async with asyncio.timeout(seconds) as limit:
                await self.ready()
                if pinned:
                    await self._refresh_tools()
                    self._check_pinned(tool, pinned)
                is_sent = True
                return await self._call(tool, arguments)
        except TimeoutError:
            if not limit.expired():
                raise
            return ToolResult(error=self._timeout_message(seconds, is_sent))
        except ServerUnavailable as error:
            return ToolResult(error=str(error))

    def _timeout_message(self, seconds: float, is_sent: bool) -> str:
        name = self.config.name
        if not is_sent:
            return f"{name} wasn't ready within {seconds:g} s, so the tool wasn't called."
        return uncertain_message(timeout_message(name, seconds))

    def definition(self, tool: str) -> ToolDefinition | None:
        return next((found for found in self.health.tools if found.name == tool), None)

    def _check_pinned(self, tool: str, pinned: str) -> None:
        found = self.definition(tool)
        if found is None:
            raise ServerUnavailable(f"{self.config.name} no longer has the tool {tool!r}.")
        if digest(found) != pinned:
            raise ServerUnavailable(
                f"The tool {tool!r} of {self.config.name} has changed. It is blocked until an "
                "administrator accepts the change."
            )

    async def close(self) -> None:
        """Close for good; holders get an error."""
        self._is_closed = True
        if self._owner is not None:
            self._owner.cancel()
            await asyncio.wait([self._owner])
        self._update_health(state="stopped")

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        client = self._client
        try:
            answer = await self._mcp.call_tool(client, tool, arguments)
        except self._mcp.FAILURES as error:
            if not self._mcp.is_connection_error(error):
                return ToolResult(error=self._mask(str(error)), mendable=True)
            reason = await self._recheck(await self._explain(error, client))
            return ToolResult(
                error=f"{self.config.name} failed during the call, which may or may not have "
                f"completed. {reason}"
            )
        finally:
            self._used = time.monotonic()
        credentials = self.config.credentials
        read: ToolResult = await self._mcp.to_tool_result(client, answer, credentials)
        return read

    async def _refresh_tools(self) -> None:
        """List the current tools; concurrent callers share one request."""
        started = time.monotonic()
        async with self._refreshing:
            if self._listed_at >= started:
                return
            client, started = self._client, time.monotonic()
            try:
                tools = await self._mcp.list_tools(client)
            except self._mcp.FAILURES as error:
                reason = await self._explain(error, client)
                if self._mcp.is_connection_error(error):
                    reason = await self._recheck(reason)
                raise ServerUnavailable(
                    f"{self.config.name} didn't list its tools, so the tool wasn't called. "
                    f"{reason}"
                ) from error
            self._listed_at = started
            if tools != self.health.tools:
                self._update_health(tools=tools)

    async def _recheck(self, reason: str) -> str:
        """Return why a call failed, once the owner has checked; calls wait until then."""
        if self._is_closed:
            return reason
        self._update_health(state="connecting")
        self._moved.clear()
        self._look.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(RECHECK_SECONDS):
                await self._moved.wait()
        return self.health.error or reason

    async def _maintain(self) -> None:
        self._mcp = await _import_client()
        self._used = time.monotonic()  # loading took a while, and someone waits
        failures = 0
        while not self._is_idle():
            began = time.monotonic()
            self._update_health(state="connecting")
            self._look.clear()
            client = self._mcp.create_client(self.config, self._egress, self._look.set)
            try:
                await self._keep_alive(client)
            except self._mcp.FAILURES as error:
                is_settled = time.monotonic() - began > STABLE_SECONDS
                failures = 0 if is_settled else failures + 1
                await self._back_off(failures, await self._explain(error, client))
        self._update_health(state="stopped")

    def _on_owner_done(self, owner: asyncio.Task[None]) -> None:
        self._moved.set()
        if not owner.cancelled() and (error := owner.exception()):
            logger.error("The owner of an MCP connection failed.", exc_info=error)
            self._retry_at = math.inf
            self._update_health(state="failed", error="Something went wrong on the server.")

    async def _keep_alive(self, client: Any) -> None:
        """Stay connected, from the first tool list until the connection fails or is idle."""
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self.config.connect_timeout):
                await stack.enter_async_context(client)
                await self._list_tools(client)
            await stack.enter_async_context(self._mcp.watch_tools(client, self._look.set))
            while not self._is_idle():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._heartbeat):
                        await self._look.wait()
                self._look.clear()
                async with asyncio.timeout(self.config.connect_timeout):
                    await self._list_tools(client)
            self._update_health(state="stopped")

    async def _list_tools(self, client: Any) -> None:
        started = time.perf_counter()
        tools = await self._mcp.list_tools(client)
        self._client = client
        self._update_health(
            state="ready", error="", tools=tools, latency=time.perf_counter() - started
        )

    async def _back_off(self, failures: int, reason: str) -> None:
        longest = BACKOFF_SECONDS * 2 ** (min(failures, MAX_DOUBLINGS) - 1) if failures else 0.0
        seconds = longest * random.uniform(0.5, 1)
        self._client = None
        self._retry_at = time.monotonic() + seconds
        self._update_health(state="failed", error=reason, restarts=self.health.restarts + 1)
        await asyncio.sleep(seconds)

    def _update_health(self, **changes: Any) -> None:
        before = self.health
        if changes.get("state", before.state) != before.state:
            changes["since"] = datetime.now(UTC)
        self.health = replace(before, **changes)
        self._moved.set()
        if self._listener is not None and self.health != before:
            self._listener(self)

    def _retries_soon(self) -> bool:
        return (
            self.health.state == "failed"
            and self._retry_at - time.monotonic() < RETRY_WAIT_SECONDS
        )

    def _is_idle(self) -> bool:
        return time.monotonic() - self._used > self._idle

    async def _explain(self, error: Exception, client: Any) -> str:
        return self._mask(await self._mcp.explain(error, client))

    def _mask(self, text: str) -> str:
        # Truncated first, because searching megabytes for secrets blocks everyone for seconds.
        # And again, because the first cut may have left half a secret.
        return mask_secrets(text[: 2 * MAX_ERROR_CHARS], *self.config.secrets)[:MAX_ERROR_CHARS]


async def _import_client() -> Any:
    """Import FastMCP in a thread and only when needed, because it takes a second or more."""
    return await asyncio.to_thread(import_module, "agents.tools.mcp.client")
