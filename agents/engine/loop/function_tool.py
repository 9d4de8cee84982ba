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

from agents.engine.tool import Effect, ToolInput, ToolResult

from .cancellation import CANCEL_GRACE_SECONDS, STOP

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
        self._arguments = _arguments_model(function)
        self.parameters = _schema(self._arguments)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        try:
            arguments = self._validate_input(input)
        except ValidationError as error:
            return ToolResult(error=_error_message(self.name, error), mendable=True)
        return _to_result(await self._call(arguments))

    async def _call(self, arguments: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**arguments)
        return await _run_in_thread(partial(self.function, **arguments))

    def _validate_input(self, input: ToolInput) -> dict[str, Any]:
        """Return validated arguments by name; a bare string is the first argument."""
        names = list(self._arguments.model_fields)
        arguments = {names[0]: input} if isinstance(input, str) and names else input
        checked = self._arguments.model_validate(arguments or {})
        return {name: getattr(checked, name) for name in names}


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


def _arguments_model(function: Function) -> type[BaseModel]:
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise TypeError(f"{function.__name__} has *{name}, but tools need named arguments.")
        required = parameter.default is parameter.empty
        fields[name] = (hints.get(name, str), ... if required else parameter.default)
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    schema.pop("title", None)
    for property in schema.get("properties", {}).values():
        property.pop("title", None)
    return schema


def _error_message(name: str, error: ValidationError) -> str:
    problems = [
        f"{'.'.join(map(str, problem['loc'])) or 'input'}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    ]
    return f"Invalid input for {name}: {'; '.join(problems)}."


def _to_result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, BaseModel):
        return ToolResult(value.model_dump_json(), is_data=True)
    if isinstance(value, str):
        return ToolResult(value)
    return ToolResult(json.dumps(value, ensure_ascii=False, default=str), is_data=True)
