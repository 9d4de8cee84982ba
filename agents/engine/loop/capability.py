"""Capabilities: what an agent has besides its model and its tools, one class each.

A runtime has one list of them. Their hooks are called in its order; `model_call` and
`tool_call` wrap the rest of the list, so the first capability is the outermost.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from agents.engine.attachments import AttachmentStore, MemoryAttachmentStore
from agents.engine.events import Event
from agents.engine.prompt_parts import PromptPart
from agents.engine.tool import Tool, ToolInput, ToolRegistry

if TYPE_CHECKING:
    from .model_calls.model_call import ModelCall
    from .run_loop import RunLoop
    from .tool_calls.tool_fallback import FallbackResult

Events = AsyncGenerator[Event, None]
ModelHandler = Callable[["ModelCall"], Events]
ToolHandler = Callable[[Tool, ToolInput], Awaitable["FallbackResult"]]


HOOKS = ("tools", "instructions", "before_run", "model_call", "tool_call", "after_run")


@dataclass(slots=True)
class Answer:
    """The answer of a run, which capabilities can change; `output` is a structured one."""

    text: str
    output: Any = None


class Capability:
    """Something an agent can do; hooks that it doesn't override are never called.

    It is shared by the agent's runs: what belongs to one of them is kept in `run`.
    """

    overridden: ClassVar[frozenset[str]] = frozenset()  # the names of its hooks

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = (name for name in HOOKS if getattr(cls, name) is not getattr(Capability, name))
        cls.overridden = frozenset(own)

    async def tools(self, run: "RunLoop", tools: ToolRegistry) -> ToolRegistry:
        """Return the tools of a run, before it starts or goes on."""
        return tools

    async def instructions(self, run: "RunLoop") -> Iterable[PromptPart]:
        """Return what is added to the instructions, before a run starts or goes on."""
        return ()

    async def before_run(self, run: "RunLoop") -> list[Event]:
        """Prepare a run whose question has passed the guardrails.

        It is called again after each resume, and in handoffs. For what a run needs only once,
        check `run.is_start` first.
        """
        return []

    def model_call(self, call: "ModelCall", next: ModelHandler) -> Events:
        """Stream one reply of the model: `next(call)`, or something else instead of it."""
        return next(call)

    async def tool_call(
        self, tool: Tool, input: ToolInput, next: ToolHandler
    ) -> "FallbackResult":
        """Make one call of a tool: `await next(tool, input)`, or something else instead."""
        return await next(tool, input)

    async def after_run(self, run: "RunLoop", answer: Answer) -> list[Event]:
        """Check or change an answer that has passed the guardrails."""
        return []


class Attachments(Capability):
    """Where the attachments of messages and results are saved."""

    def __init__(self, store: AttachmentStore | None = None) -> None:
        self.store = store or MemoryAttachmentStore()


class Context(Capability):
    """A text about the user or the chat, the same in every turn."""

    def __init__(self, source: str, text: str) -> None:
        self.part = PromptPart(source=source, text=text)

    async def instructions(self, run: "RunLoop") -> Iterable[PromptPart]:
        return [self.part]


class Hooks:
    """The hooks of an agent's capabilities, in the order of its list."""

    def __init__(self, capabilities: Iterable[Capability] = ()) -> None:
        hooks: dict[str, list[Callable[..., Any]]] = {name: [] for name in HOOKS}
        for capability in capabilities:
            for name in capability.overridden:
                hooks[name].append(getattr(capability, name))
        self.tools = hooks["tools"]
        self.instructions = hooks["instructions"]
        self.before_run = hooks["before_run"]
        self.model_call = hooks["model_call"]
        self.tool_call = hooks["tool_call"]
        self.after_run = hooks["after_run"]

    def wrap_model(self, handler: ModelHandler) -> ModelHandler:
        for hook in reversed(self.model_call):
            handler = partial(hook, next=handler)
        return handler

    def wrap_tool(self, handler: ToolHandler) -> ToolHandler:
        for hook in reversed(self.tool_call):
            handler = partial(hook, next=handler)
        return handler


def without(capabilities: Iterable[Capability], *kinds: type[Capability]) -> list[Capability]:
    """Return the capabilities that are of none of these kinds."""
    return [capability for capability in capabilities if not isinstance(capability, kinds)]
