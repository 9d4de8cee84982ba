"""Input items of responses as an agent's question, its history and its instructions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.utils.translation import gettext as _

from agents.db import database
from agents.db.sanitize import parse_id
from agents.engine.state import Message
from agents.models import Approval, Run
from agents.runs import event_store
from agents.web.api_errors import ApiError

from .. import client_tools, waiting
from .. import files as sent_files
from ..calls import Caller
from ..client_tools import FunctionResult
from ..files import SentFile
from . import compaction
from .conversation import build, count_parts, function_call, tool_message
from .response_schemas import (
    ApprovalResponseItem,
    CompactionItem,
    FunctionCallItem,
    FunctionOutputItem,
    InputFile,
    InputImage,
    InputPart,
    InputRefusal,
    InputText,
    Item,
    MessageItem,
)
from .response_writer import request_id


@dataclass(slots=True)
class ResponseInput:
    """What a request says, as the parts of a question."""

    text: str = ""
    files: Sequence[SentFile] = ()
    history: list[Message] = field(default_factory=list)
    instructions: Sequence[str] = ()
    results: list[FunctionResult] = field(default_factory=list)
    approvals: list[ApprovalResponseItem] = field(default_factory=list)


async def read(
    caller: Caller, items: str | list[Item] | None, previous: Run | None
) -> ResponseInput:
    """Return what these items say after a previous response. Raises ApiError."""
    items = as_items(items)
    approvals = [item for item in items if isinstance(item, ApprovalResponseItem)]
    if approvals:
        return ResponseInput(approvals=approvals)
    instructions, messages = await read_messages(caller, items, previous)
    talk = build(instructions, messages)
    return ResponseInput(
        text=talk.text,
        files=talk.files,
        history=talk.history,
        instructions=instructions,
        results=talk.results,
    )


async def read_messages(
    caller: Caller, items: Sequence[Item], previous: Run | None
) -> tuple[list[str], list[Message]]:
    """Return the instructions and the messages of these items after a previous response."""
    messages: list[Message] = []
    names: dict[str, str] = {}
    if previous is not None:
        messages, names = await database.run(_earlier, previous)
    instructions: list[str] = []
    contents = [vars(item).get("content") or vars(item).get("output") for item in items]
    sent_files.check_count(count_parts(contents, InputImage | InputFile))
    for item in items:
        match item:
            case MessageItem(role="system" | "developer", content=content):
                instructions.append((await _content(content))[0])
            case MessageItem(role="user", content=content):
                text, files = await _content(content)
                messages.append({"role": "user", "content": text} | files)
            case MessageItem(content=content):
                messages.append({"role": "assistant", "content": (await _content(content))[0]})
            case FunctionCallItem():
                names[item.call_id] = item.name
                _add_call(messages, item)
            case FunctionOutputItem():
                text = (await _content(item.output))[0]
                messages.append(tool_message(item.call_id, text, names))
            case CompactionItem():
                messages += compaction.read(caller, item.encrypted_content)
    return instructions, messages


def as_items(given: str | list[Item] | None) -> list[Item]:
    """Return input as items; a text is the user's message."""
    if isinstance(given, str):
        return [MessageItem(role="user", content=given)]
    return given or []


def _earlier(run: Run) -> tuple[list[Message], dict[str, str]]:
    """Return what was said up to the end of a run, and its calls without a result, by id."""
    unanswered = (Approval.Verdict.WAITING, Approval.Verdict.WITHDRAWN)
    rows = run.approvals.filter(why=Approval.Why.CLIENT, verdict__in=unanswered)
    calls = [
        function_call(client_tools.call_id(run.pk, row.step), row.tool, row.arguments)
        for row in rows
    ]
    if not calls:
        return [*run.history, *event_store.transcript(run)], {}
    question: Message = {"role": "user", "content": run.query}
    opening: Message = {"role": "assistant", "content": None, "tool_calls": calls}
    names = {call["id"]: call["function"]["name"] for call in calls}
    return [*run.history, question, opening], names


def _add_call(messages: list[Message], item: FunctionCallItem) -> None:
    """Add a call; several in a row are one message of the assistant."""
    call = function_call(item.call_id, item.name, item.arguments)
    if messages and messages[-1].get("tool_calls"):
        messages[-1]["tool_calls"].append(call)
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


async def _content(content: str | list[InputPart]) -> tuple[str, dict[str, Any]]:
    if isinstance(content, str):
        return content, {}
    texts: list[str] = []
    files: list[SentFile] = []
    for part in content:
        match part:
            case InputText(text=text) | InputRefusal(refusal=text):
                texts.append(text)
            case InputImage(image_url=str(url)):
                files.append(await sent_files.fetch(url))
            case InputFile(file_url=str(url), filename=name):
                files.append(await sent_files.fetch(url, name or ""))
            case InputFile(file_data=str(data), filename=name):
                files.append(sent_files.decode(data, name or ""))
    return "\n\n".join(texts), {"files": files} if files else {}


def run_of_approval(caller: Caller, decision: ApprovalResponseItem) -> Run | None:
    """Return the caller's run that waits for this decision, if there is one."""
    approval = _approval(caller, decision)
    return approval.run if approval is not None else None


async def decide(caller: Caller, run: Run, decisions: Sequence[ApprovalResponseItem]) -> int:
    """Answer what a run waits for; return the number of its last event before that."""
    after = await database.run(event_store.last_seq, run)
    for decision in decisions:
        approval = await database.run(_approval, caller, decision)
        if approval is None or approval.run_id != run.pk:
            sentence = _("No request with this ID waits for a decision.")
            raise ApiError(400, sentence, "approval_not_found", param="input")
        await waiting.answer(
            caller, f"{approval.pk}-{approval.digest}", _value(approval, decision)
        )
    return after


def _value(approval: Approval, decision: ApprovalResponseItem) -> Mapping[str, Any] | None:
    if approval.is_question or approval.is_elicitation:
        if not decision.approve:
            return None
        answer = decision.answer
        return answer if isinstance(answer, dict) else {"answer": answer or decision.reason}
    value = {"approved": decision.approve, "reason": decision.reason}
    return value | ({"arguments": decision.arguments} if decision.arguments else {})


def _approval(caller: Caller, decision: ApprovalResponseItem) -> Approval | None:
    prefix, run_text, step_text, digest = [
        *decision.approval_request_id.split("_"),
        *("", "", "", ""),
    ][:4]
    run = parse_id(run_text)
    step = parse_id(step_text)
    if prefix != "apr" or run is None or step is None:
        return None
    # Experts decide about runs of others, too, which they may not read.
    own = caller.started_runs().filter(pk=run)
    rows = Approval.objects.for_user(caller.user).waiting().filter(run__in=own, step=step)
    return rows.filter(digest=digest).select_related("run").first()


def items_of(run: Run, after: int) -> list[dict[str, Any]]:
    """Return what a response was asked, as items."""
    if after:
        return [_answered(run, row) for row in _answers(run, after)]
    messages = [*run.history, {"role": "user", "content": run.query}]
    items = chain.from_iterable(map(_items_of_message, messages))
    common = {"status": "completed"}
    return [item | common | {"id": f"in_{run.pk}_{n}"} for n, item in enumerate(items)]


def _items_of_message(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        output = {"call_id": message["tool_call_id"], "output": message["content"]}
        return [{"type": "function_call_output"} | output]
    if message.get("tool_calls"):
        return [
            {"type": "function_call", "call_id": call["id"]} | call["function"]
            for call in message["tool_calls"]
        ]
    kind = "output_text" if message["role"] == "assistant" else "input_text"
    content: dict[str, Any] = {"type": kind, "text": message["content"] or ""}
    if kind == "output_text":
        content["annotations"] = []
    return [{"type": "message", "role": message["role"], "content": [content]}]


def _answers(run: Run, after: int) -> list[Approval]:
    """Return what was answered with the request that continued a run there."""
    events = run.events.filter(seq__gt=after).order_by("seq")
    steps: list[int] = []
    for type, data in events.values_list("type", "data")[:100]:
        if type != "approval_resolved":
            break
        steps.append(data["step"])
    return list(run.approvals.filter(step__in=steps))


def _answered(run: Run, row: Approval) -> dict[str, Any]:
    common = {"id": f"in_{run.pk}_{row.step}_answer", "status": "completed"}
    if row.is_client:
        return common | {
            "type": "function_call_output",
            "call_id": client_tools.call_id(run.pk, row.step),
            "output": str(row.reason),
        }
    return common | {
        "type": "ashiato:approval_response",
        "approval_request_id": request_id(run.pk, row.step, row.digest),
        "approve": row.verdict != Approval.Verdict.REJECTED,
        "reason": str(row.reason),
        "arguments": json.loads(row.new_arguments) if row.new_arguments else None,
    }
