"""The connection to one MCP server, through which its tools are called."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from agents.engine import call_context
from agents.engine.call_context import CallContext
from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolResult, timeout_message, uncertain_message

from ..configuration import command_line
from ..definition import Resource, ToolDefinition, digest
from ..errors import ServerUnavailable, ToolWithdrawn, changed_message, gone_message
from .calls import CallInFlight, CallTimedOut
from .connection_lifecycle import RETRY_WAIT_SECONDS, ConnectionLifecycle

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
                    if pinned:
                        await self._refresh_tools()
                        definition = self.definition(tool)
                        if definition is None:
                            raise ToolWithdrawn(gone_message(self.config.name, tool))
                        if digest(definition) != pinned:
                            raise ToolWithdrawn(changed_message(self.config.name, tool))
                    call.is_sent = True
                    return await self._call(call, tool, arguments)
        except CallTimedOut as error:
            limit = error.call.timeout.seconds
            # Sent, so it may have completed; one that wasn't can be repeated.
            if error.call.is_sent:
                message = uncertain_message(timeout_message(self.config.name, limit))
            else:
                message = _(
                    "%(name)s didn't list its tools within %(seconds)s s, so the tool "
                    "wasn't called.",
                    name=self.config.name,
                    seconds=f"{limit:g}",
                )
            return ToolResult(error=message, is_late=error.call.is_sent)
        except ToolWithdrawn as error:
            return ToolResult(error=str(error), mendable=True)
        except ServerUnavailable as error:
            return ToolResult(error=str(error))

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
            message = _(
                "%(name)s wasn't ready within %(seconds)s s, so the tool wasn't called.",
                name=self.config.name,
                seconds=f"{self.config.connect_timeout:g}",
            )
            if command_line.downloads_packages(self.config):
                message = _(
                    "%(sentence)s If it is still downloading packages, increase its start "
                    "timeout.",
                    sentence=message,
                )
            raise ServerUnavailable(message) from None
        finally:
            report_task.cancel()
        context.extend_timeout()
        took = time.monotonic() - started
        if took >= START_REPORT_SECONDS / 4:  # the step still says that it is starting
            message = _(
                "%(name)s started in %(seconds)s s.",
                name=self.config.name,
                seconds=f"{took:.1f}",
            )
            context.report_progress(round(took), message=message)

    async def _report_start(self, context: CallContext) -> None:
        started = time.monotonic()
        message = _("%(name)s is starting.", name=self.config.name)
        if command_line.downloads_packages(self.config):
            message = _(
                "%(sentence)s The first start downloads its packages.", sentence=message
            )
        await asyncio.sleep(START_REPORT_SECONDS / 4)
        while True:
            context.report_progress(round(time.monotonic() - started), message=message)
            await asyncio.sleep(START_REPORT_SECONDS)

    def definition(self, tool: str) -> ToolDefinition | None:
        tools = self.health.tools
        return next((definition for definition in tools if definition.name == tool), None)

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
                if not self._mcp.is_connection_error(error, client):
                    return ToolResult(error=self._mask(str(error)), mendable=True)
                reason = await self._recheck(await self._explain(error, client))
                return ToolResult(
                    error=_(
                        "%(name)s failed during the call, which may or may not have "
                        "completed. %(reason)s",
                        name=self.config.name,
                        reason=reason,
                    )
                )
        else:
            credentials = (*self.config.credentials, *self._sign_in_secrets)
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
                # Connect again, which lists the tools, too: nothing has been called so far.
                reason = await self._recheck(reason)
                try:
                    await self.ready()
                except ServerUnavailable as unavailable:
                    raise self._listing_failed(reason) from unavailable
                return
            self._listed_at = started
            if tools != self.health.tools:
                self._update_health(tools=tools)

    async def list_resources(self, cursor: str | None) -> tuple[list[Resource], str | None]:
        """Return a page of resources and the next cursor; raise ServerUnavailable."""
        page: tuple[list[Resource], str | None] = await self._request(
            lambda: self._mcp.list_resources(self._client, cursor)
        )
        return page

    async def read_resource(self, uri: str) -> bytes:
        """Return a resource's content; raise ServerUnavailable, or ToolError if it fails."""
        content: bytes = await self._request(lambda: self._mcp.read_resource(self._client, uri))
        return content

    async def _request(self, request: Callable[[], Awaitable[Any]]) -> Any:
        """Return the response; a server that fails to respond is unavailable."""
        await self.ready()
        client = self._client
        try:
            async with asyncio.timeout(self.config.call_timeout):
                return await request()
        except self._mcp.FAILURES as error:
            reason = await self._explain(error, client)
            if self._mcp.is_connection_error(error, client):
                raise ServerUnavailable(reason) from error
            raise ToolError(reason) from error
        finally:
            self._used = time.monotonic()

    def _listing_failed(self, reason: str) -> ServerUnavailable:
        return ServerUnavailable(
            _(
                "%(name)s didn't list its tools, so the tool wasn't called. %(reason)s",
                name=self.config.name,
                reason=reason,
            )
        )
