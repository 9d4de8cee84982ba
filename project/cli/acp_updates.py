"""A run's events as updates of the Agent Client Protocol."""

import json
from collections.abc import Iterator
from typing import Any

import acp
from acp import schema

from agents.management.run_printer import WireEvent

MAX_TITLE_CHARS = 120
TOOL_KINDS: dict[str, schema.ToolKind] = {
    "calculator": "think",
    "describe_image": "read",
    "read_document": "read",
    "run_python": "execute",
    "search": "search",
}


def text_of(block: Any) -> str:
    """Return a part of a prompt as text for the agent."""
    match block:
        case schema.TextContentBlock():
            return block.text
        case schema.ResourceContentBlock():
            return f"[{block.title or block.name}]({block.uri})"
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents()):
            return f"{block.resource.uri}:\n```\n{block.resource.text}\n```"
    return ""


def tool_title(tool: str, arguments: str) -> str:
    title = f"{tool} {arguments}"
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1]}…"


class Translation:
    """What was sent of one run so far."""

    def __init__(self) -> None:
        self.streamed = ""  # of the answer, in the current step
        self.thought = ""  # in the current step
        self.plan: dict[str, schema.PlanEntryStatus] = {}
        self.tasks: dict[int, str] = {}  # names of the plan's steps
        self.requested: dict[int, str] = {}  # calls that need approval, by step

    def updates(self, event: WireEvent) -> Iterator[Any]:
        data = event["data"]
        is_nested = "parent" in data
        match event["type"]:
            case "step_started" if not is_nested:
                self.streamed = self.thought = ""
            case "delta" if not is_nested:
                self.streamed += data["content"]
                yield acp.update_agent_message_text(data["content"])
            case "thought_delta" if not is_nested:
                self.thought += data["content"]
                yield acp.update_agent_thought_text(data["content"])
            case "thought" if not is_nested and not self.thought and not self.streamed:
                yield acp.update_agent_thought_text(data["content"])
            case "tool_call":
                yield _tool_call(event)
            case "approval_requested":
                self.requested[data["step"]] = data["id"]
            case "tool_response":
                yield acp.update_tool_call(
                    data["tool_call_id"],
                    status="failed" if data.get("is_error") else "completed",
                    content=[acp.tool_content(acp.text_block(data["content"]))],
                )
            case "plan" if not is_nested:
                self.plan = {step["name"]: "pending" for step in data["steps"]}
                yield self._plan()
            case "task" if data["kind"] == "task" and data["name"] in self.plan:
                self.tasks[data["step"]] = data["name"]
                self.plan[data["name"]] = "in_progress"
                yield self._plan()
            case "step" if data["step"] in self.tasks:
                self.plan[self.tasks.pop(data["step"])] = "completed"
                yield self._plan()
            case "run_finished" if not is_nested and data["answer"] != self.streamed:
                # A guardrail may have changed what was streamed.
                separator = "\n\n" if self.streamed else ""
                yield acp.update_agent_message_text(f"{separator}{data['answer']}")

    def _plan(self) -> schema.AgentPlanUpdate:
        return acp.update_plan(
            acp.plan_entry(name, status=status) for name, status in self.plan.items()
        )


def _tool_call(event: WireEvent) -> schema.ToolCallStart:
    data = event["data"]
    function = data["function"]
    speaker = f"{event['agent']}: " if "parent" in data else ""
    try:
        arguments: Any = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return acp.start_tool_call(
        data["id"],
        f"{speaker}{tool_title(function['name'], function['arguments'])}",
        kind=TOOL_KINDS.get(function["name"], "other"),
        status="in_progress",
        raw_input=arguments,
    )
