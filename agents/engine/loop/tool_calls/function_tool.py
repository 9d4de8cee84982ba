"""Wraps a function as a tool: its signature is the schema, its docstring the description."""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agents.engine.sentences import Sentence as _
from agents.engine.sentences import joined
from agents.engine.tool import Effect, ToolInput, ToolResult

from ..cancellation import CANCEL_GRACE_SECONDS, STOP

Function = Callable[..., Any]


class FunctionTool:
    """A function as a tool: validates the input and runs blocking functions in a thread.

    Without `needs_approval`, the product asks unless the function only reads.
    """

    def __init__(
        self,
        function: Function,
        *,
        name: str = "",
        description: str = "",
        effect: Effect = "at_most_once",
        needs_approval: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.description = description or inspect.getdoc(function) or ""
        self.effect = effect
        self.needs_approval = needs_approval
        self.timeout = timeout
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for argument, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
                raise TypeError(
                    f"{function.__name__} has *{argument}, but tools need named arguments."
                )
            is_required = parameter.default is parameter.empty
            default = ... if is_required else parameter.default
            fields[argument] = (hints.get(argument, str), default)
        self._arguments = create_model(
            function.__name__, __config__=ConfigDict(extra="forbid"), **fields
        )
        self.parameters = self._arguments.model_json_schema()
        self.parameters.pop("title", None)
        for property in self.parameters.get("properties", {}).values():
            property.pop("title", None)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        names = list(self._arguments.model_fields)
        # A bare string is the first argument.
        fields = {names[0]: input} if isinstance(input, str) and names else input
        try:
            checked = self._arguments.model_validate(fields or {})
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, problem['loc'])) or 'input'}: {problem['msg']}"
                for problem in error.errors(include_url=False)
            ]
            sentence = _(
                "Invalid arguments for %(tool)s: %(problems)s.",
                tool=self.name,
                problems=joined("; ", problems),
            )
            return ToolResult(error=sentence, mendable=True)
        arguments = {name: getattr(checked, name) for name in names}
        if inspect.iscoroutinefunction(self.function):
            value = await self.function(**arguments)
        else:
            value = await _run_in_thread(partial(self.function, **arguments))
        match value:
            case ToolResult():
                return value
            case BaseModel():
                return ToolResult(value.model_dump_json(), is_data=True)
            case str():
                return ToolResult(value)
        return ToolResult(json.dumps(value, ensure_ascii=False, default=str), is_data=True)


@overload
def function_tool(function: Function, /) -> FunctionTool: ...
@overload
def function_tool(
    *,
    name: str = "",
    description: str = "",
    effect: Effect = "at_most_once",
    needs_approval: bool | None = None,
    timeout: float | None = None,
) -> Callable[[Function], FunctionTool]: ...
def function_tool(
    function: Function | None = None, /, **options: Any
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of a function, as a decorator with or without options."""
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, **options)


async def _run_in_thread(function: Callable[[], Any]) -> Any:
    """Run in a dedicated thread, because a hanging call would block a shared pool."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    future.set_running_or_notify_cancel()
    # With the call's context, so that the function can report its progress.
    context = copy_context()
    threading.Thread(target=context.run, args=(run,), name="tool", daemon=True).start()
    result = asyncio.wrap_future(future)
    result.add_done_callback(_consume_exception)
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError as stop:
        # A thread can't be killed; if it ends within the grace period, its result is used.
        if (
            stop.args == (STOP,)
            and (await asyncio.wait([result], timeout=CANCEL_GRACE_SECONDS / 2))[0]
        ):
            return result.result()
        raise


def _consume_exception(result: asyncio.Future[Any]) -> None:
    """Retrieve the exception, so that asyncio doesn't report it as unhandled."""
    if not result.cancelled():
        result.exception()
