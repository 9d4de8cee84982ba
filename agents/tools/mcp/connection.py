"""The connection to one MCP server, through which its tools are called."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agents.engine import call_context
from agents.engine.call_context import CallContext
from agents.engine.errors import ToolError
from agents.engine.tool import ToolResult, timeout_message, uncertain_message

from . import command_line
from .calls import CallInFlight, CallTimedOut
from .connection_lifecycle import RETRY_WAIT_SECONDS, ConnectionLifecycle
from .definition import ToolDefinition, digest
from .errors import ServerUnavailable, ToolWithdrawn, changed_message, gone_message

START_REPORT_SECONDS = 2.0
SETTLE_SECONDS = 1.0


class Connection(ConnectionLifecycle):
    """Calls tools; any failure is a result."""

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
            message = self._timeout_message(error.call)
            return ToolResult(error=message, is_late=error.call.is_sent)
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
        report_task = asyncio.create_task(self._report_start(context))
        try:
            async with asyncio.timeout(seconds) as deadline:
                await self.ready()
        except TimeoutError:
            if not deadline.expired():
                raise
            raise ServerUnavailable(self._not_ready_message()) from None
        finally:
            report_task.cancel()
        context.extend_timeout()
        took = time.monotonic() - started
        if took >= START_REPORT_SECONDS / 4:  # the step still says that it is starting
            message = f"{self.config.name} started in {took:.1f} s."
            context.report_progress(round(took), message=message)

    async def _report_start(self, context: CallContext) -> None:
        started = time.monotonic()
        message = f"{self.config.name} is starting."
        if command_line.downloads_packages(self.config):
            message = f"{message} The first start downloads its packages."
        await asyncio.sleep(START_REPORT_SECONDS / 4)
        while True:
            context.report_progress(round(time.monotonic() - started), message=message)
            await asyncio.sleep(START_REPORT_SECONDS)

    def _not_ready_message(self) -> str:
        name = self.config.name
        seconds = self.config.connect_timeout
        message = f"{name} wasn't ready within {seconds:g} s, so the tool wasn't called."
        if not command_line.downloads_packages(self.config):
            return message
        return f"{message} If it is still downloading packages, increase its start timeout."

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
            response = await self._mcp.call_tool(client, tool, arguments, call.report_progress)
        except self._mcp.FAILURES as error:
            if is_repeated or not await self._can_repeat(error, client):
                return await self._failed_result(error, client)
        else:
            credentials = self.config.credentials
            result: ToolResult = await self._mcp.to_tool_result(client, response, credentials)
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

    async def settle(self) -> None:
        """Include the tools that a server adds just after the handshake; when connected.

        Raises ServerUnavailable if the server is lost meanwhile.
        """
        if self._mcp.announces_changes(self._client):
            await asyncio.sleep(SETTLE_SECONDS)
            await self.refresh(self.config.connect_timeout)
            await self.ready(again=False)

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
        async with self._refresh_lock:
            if self._listed_at >= started:
                return
            client = self._client
            started = time.monotonic()
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
