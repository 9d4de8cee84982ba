"""The connection to one MCP server: made, maintained and reconnected by one task."""

import asyncio
import contextvars
import logging
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Literal

from agents.engine import call_context
from agents.engine.call_context import CallContext
from agents.engine.errors import ToolError
from agents.engine.privacy import mask_secrets
from agents.engine.tool import ToolResult, timeout_message, uncertain_message
from agents.tools.egress import Egress

from . import launch
from .calls import CallInFlight, CallTimedOut, CallTracker
from .config import ServerConfig
from .definition import ToolDefinition, digest

ConnectionState = Literal["connecting", "ready", "failed", "stopped"]
# For runs, the handshake of 2025 comes first: many servers only ask the user and the model in
# that way, even if they know a newer revision.
Variant = Literal["handshake", "newest", "sse"]
ConnectionListener = Callable[["Connection"], None]

HEARTBEAT_SECONDS = 60.0
IDLE_SECONDS = 900.0
BACKOFF_SECONDS = 0.5
MAX_DOUBLINGS = 8  # up to a pause of a minute
STABLE_SECONDS = 20.0
RETRY_WAIT_SECONDS = 2.0
RECHECK_SECONDS = 1.0
CLOSE_SECONDS = 10.0  # longer than a server gets to end by itself
START_REPORT_SECONDS = 2.0
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


class ToolWithdrawn(ToolError):
    """The server doesn't offer the tool any more, or not as it was accepted."""


def gone_message(server: str, tool: str) -> str:
    return f"{server} no longer offers {tool}."


def changed_message(server: str, tool: str) -> str:
    return f"{tool} of {server} has changed and waits for an administrator to accept it."


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
        is_interactive: bool = False,
    ) -> None:
        self.config = config
        self.health = Health()
        self.calls = CallTracker(config.name, self._mask)
        self._holders = 0
        self._is_interactive = is_interactive
        self._variant: Variant = "handshake" if is_interactive else "newest"
        self._first_variant = self._variant
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
        return self._holders > 0

    @property
    def used_at(self) -> float:
        return self._used

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep it from being stopped as unused, or to make room for another instance."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1

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

        Cancelling this cancels it there. The time until the server is ready doesn't count. With
        the digest of an accepted definition, the tool is only called if the server still
        describes it that way: not every server announces changes.
        """
        context = call_context.current()
        seconds = seconds or self.config.call_timeout
        try:
            with self.held():
                await self._wait_until_ready(context)
                async with self.calls.track(context, seconds) as call:
                    return await self._call_pinned(call, tool, arguments, pinned)
        except CallTimedOut as error:
            # Sent, so it may have completed; one that wasn't can be repeated.
            late = self._timeout_message(error.call)
            return ToolResult(error=late, is_late=error.call.is_sent)
        except ToolWithdrawn as error:
            return ToolResult(error=str(error), mendable=True)
        except ServerUnavailable as error:
            return ToolResult(error=str(error))

    async def _call_pinned(
        self, call: CallInFlight, tool: str, arguments: Mapping[str, Any], pinned: str
    ) -> ToolResult:
        if pinned:
            await self._refresh_tools()
            self._check_pinned(tool, pinned)
        call.is_sent = True
        return await self._call(call, tool, arguments)

    async def _wait_until_ready(self, context: CallContext) -> None:
        """Wait for the server while the step says so; raise ServerUnavailable."""
        seconds = self.config.connect_timeout + RETRY_WAIT_SECONDS
        started = time.monotonic()
        reporting = asyncio.create_task(self._report_start(context))
        try:
            async with asyncio.timeout(seconds) as limit:
                await self.ready()
        except TimeoutError:
            if not limit.expired():
                raise
            raise ServerUnavailable(self._not_ready_message()) from None
        finally:
            reporting.cancel()
        context.extend_timeout()
        took = time.monotonic() - started
        if took >= START_REPORT_SECONDS / 4:  # the step still says that it is starting
            message = f"{self.config.name} started in {took:.1f} s."
            context.report_progress(round(took), message=message)

    async def _report_start(self, context: CallContext) -> None:
        started = time.monotonic()
        message = f"{self.config.name} is starting."
        if launch.downloads_packages(self.config):
            message = f"{message} The first start downloads its packages."
        await asyncio.sleep(START_REPORT_SECONDS / 4)
        while True:
            context.report_progress(round(time.monotonic() - started), message=message)
            await asyncio.sleep(START_REPORT_SECONDS)

    def _not_ready_message(self) -> str:
        name, seconds = self.config.name, self.config.connect_timeout
        late = f"{name} wasn't ready within {seconds:g} s, so the tool wasn't called."
        if not launch.downloads_packages(self.config):
            return late
        return f"{late} If it is still downloading packages, increase its start timeout."

    def _timeout_message(self, call: CallInFlight) -> str:
        name, seconds = self.config.name, call.timeout.seconds
        if not call.is_sent:
            return (
                f"{name} didn't list its tools within {seconds:g} s, so the tool wasn't called."
            )
        return uncertain_message(timeout_message(name, seconds))

    def definition(self, tool: str) -> ToolDefinition | None:
        return next((found for found in self.health.tools if found.name == tool), None)

    def _check_pinned(self, tool: str, pinned: str) -> None:
        found = self.definition(tool)
        if found is None:
            raise ToolWithdrawn(gone_message(self.config.name, tool))
        if digest(found) != pinned:
            raise ToolWithdrawn(changed_message(self.config.name, tool))

    async def close(self) -> None:
        """Close for good; holders get an error."""
        self._is_closed = True
        if self._owner is not None:
            # Again if that took too long: a library may have swallowed the first one.
            while not self._owner.done():
                self._owner.cancel()
                await asyncio.wait([self._owner], timeout=CLOSE_SECONDS)
        self._update_health(state="stopped")

    async def _call(
        self,
        call: CallInFlight,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        is_repeated: bool = False,
    ) -> ToolResult:
        client = self._client
        try:
            answer = await self._mcp.call_tool(client, tool, arguments, call.report_progress)
        except self._mcp.FAILURES as error:
            if is_repeated or not await self._can_repeat(error, client):
                return await self._failed_result(error, client)
        else:
            credentials = self.config.credentials
            result: ToolResult = await self._mcp.to_tool_result(client, answer, credentials)
            return result
        finally:
            self._used = time.monotonic()
        return await self._call(call, tool, arguments, is_repeated=True)

    async def _can_repeat(self, error: Exception, client: Any) -> bool:
        """Whether the call wasn't made, and what kept it from being made is resolved."""
        if self._mcp.is_session_expired(client):
            await self._recheck("")
            await self.ready()
            return True
        questions = self._mcp.url_questions(self.config.name, error)
        try:
            answers = [await self.calls.ask(question) for question in questions]
        except ToolError:
            return False
        return bool(answers) and all(answer.action == "accept" for answer in answers)

    async def _failed_result(self, error: Exception, client: Any) -> ToolResult:
        if not self._mcp.is_connection_error(error, client):
            return ToolResult(error=self._mask(str(error)), mendable=True)
        reason = await self._recheck(await self._explain(error, client))
        return ToolResult(
            error=f"{self.config.name} failed during the call, which may or may not have "
            f"completed. {reason}"
        )

    async def refresh(self, seconds: float) -> None:
        """List the current tools if that is quick; a call checks them anyway."""
        if self.health.state != "ready":
            return
        with suppress(TimeoutError, ServerUnavailable):
            async with asyncio.timeout(seconds):
                await self._refresh_tools()

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
                if not self._mcp.is_connection_error(error, client):
                    raise self._listing_failed(reason) from error
                await self._relist(reason)
                return
            self._listed_at = started
            if tools != self.health.tools:
                self._update_health(tools=tools)

    async def _relist(self, reason: str) -> None:
        """Connect again, which lists the tools, too: nothing has been called so far."""
        reason = await self._recheck(reason)
        try:
            await self.ready()
        except ServerUnavailable as error:
            raise self._listing_failed(reason) from error

    def _listing_failed(self, reason: str) -> ServerUnavailable:
        return ServerUnavailable(
            f"{self.config.name} didn't list its tools, so the tool wasn't called. {reason}"
        )

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
        while not self._is_closed and not self._is_idle():
            began = time.monotonic()
            self._update_health(state="connecting")
            self._look.clear()
            client = self._create_client()
            try:
                await self._keep_alive(client)
            except self._mcp.FAILURES as error:
                reason = await self._explain(error, client)
                if self._try_variant(client, error, reason):
                    continue
                is_settled = time.monotonic() - began > STABLE_SECONDS
                failures = 0 if is_settled else failures + 1
                await self._back_off(failures, self._first_reason or reason)
        self._update_health(state="stopped")

    def _create_client(self) -> Any:
        requests = self.calls if self._is_interactive else None
        return self._mcp.create_client(
            self.config, self._egress, self._look.set, requests, self._variant
        )

    def _try_variant(self, client: Any, error: Exception, reason: str) -> bool:
        """Whether to try another protocol at once; if all fail, the first reason counts."""
        if self._variant == self._first_variant:
            others: list[Variant] = self._mcp.other_variants(client, error)
            self._variants = [one for one in others if one != self._variant]
            self._first_reason = reason if self._variants else ""
        is_left = bool(self._variants)
        self._variant = self._variants.pop(0) if is_left else self._first_variant
        return is_left

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
        self._variants, self._first_reason = [], ""
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
        return not self.is_busy and time.monotonic() - self._used > self._idle

    async def _explain(self, error: Exception, client: Any) -> str:
        return self._mask(await self._mcp.explain(error, client))

    def _mask(self, text: str) -> str:
        # Truncated first, because searching megabytes for secrets blocks everyone for seconds.
        # And again, because the first cut may have left half a secret.
        return mask_secrets(text[: 2 * MAX_ERROR_CHARS], *self.config.secrets)[:MAX_ERROR_CHARS]


async def _import_client() -> Any:
    """Import FastMCP in a thread and only when needed, because it takes a second or more."""
    return await asyncio.to_thread(import_module, "agents.tools.mcp.client")
