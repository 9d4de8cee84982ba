"""Agents and workflows as tools: what a program sees of them, and how it starts them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import mcp_types as wire
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Prefetch
from django.utils.text import slugify
from django.utils.translation import gettext as _
from pydantic import BaseModel, Field, ValidationError

from agents.catalog.tools import tool_factory
from agents.engine.loop import effect
from agents.engine.plans import read_definition
from agents.knowledge.files import FileRefused
from agents.models import Agent, AgentTool, ApiKey, Run, ToolRegistration, Workflow
from agents.web.api_errors import ApiError
from agents.web.workflows import start
from chat import attachments
from chat.api import calls
from chat.models import ChatSession, Message

from .context import McpCall

WORKFLOW_PREFIX = "workflow_"
MAX_NAME_CHARS = 50
MAX_FILES = 10

ASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": "What to ask, or what to do."},
        "conversation": {
            "type": "integer",
            "description": "Continues an earlier conversation: the id in its result. "
            "Without it, a new one begins.",
        },
        "files": {
            "type": "array",
            "maxItems": MAX_FILES,
            "description": "Texts for the agent to read, as files.",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "For example report.md."},
                    "text": {"type": "string"},
                },
                "required": ["name", "text"],
            },
        },
    },
    "required": ["question"],
}
RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "run": {"type": "integer", "description": "The id of the run."},
        "conversation": {"type": "integer", "description": "To continue with."},
        "status": {"type": "string", "enum": list(Run.Status.values)},
        "url": {"type": "string", "description": "The trace: every step of the run."},
        "sources": {"type": "array", "items": {"type": "string"}},
        "output": {"description": "The answer as data, if the agent answers with data."},
    },
    "required": ["run", "conversation", "status", "url", "sources"],
}
JSON_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


class TextFile(BaseModel):
    name: str = Field(min_length=1, max_length=200)
    text: str


class AskArguments(BaseModel):
    question: str
    conversation: int | None = Field(default=None, ge=1, lt=2**63)
    files: list[TextFile] = Field(default=[], max_length=MAX_FILES)


def list_tools(call: McpCall) -> list[wire.Tool]:
    """Return what the user can ask and start, if the key may ask."""
    if not call.has(ApiKey.Scope.ASK):
        return []
    links = Prefetch("links", AgentTool.objects.select_related("tool"))
    agents = call.caller.agents().prefetch_related(links, "handoffs").order_by("name")
    built = tool_factory.build_tools(ToolRegistration.objects.filter(enabled=True))
    effects = {tool.name: effect(tool) for tool in built}
    tools = [_agent_tool(agent, effects) for agent in agents]
    tools += [
        _workflow_tool(name, workflow) for name, workflow in workflows_by_name(call).items()
    ]
    return tools


def workflows_by_name(call: McpCall) -> dict[str, Workflow]:
    """Return the workflows that the user can start, by the names of their tools."""
    named: dict[str, Workflow] = {}
    for workflow in Workflow.objects.for_user(call.caller.user).filter(enabled=True):
        name = f"{WORKFLOW_PREFIX}{slugify(workflow.name).replace('-', '_')[:MAX_NAME_CHARS]}"
        if name in named or name == WORKFLOW_PREFIX:
            name = f"{name.rstrip('_')}_{workflow.pk}"
        named[name] = workflow
    return named


def _agent_tool(agent: Agent, effects: Mapping[str, str]) -> wire.Tool:
    """Return an agent as a tool; `effects` are those of tools that are no servers'."""
    links = agent.links.all()
    used = {link.effect or effects.get(link.tool.name, link.tool.effect) for link in links}
    reads_only = used <= {"read"} and not agent.handoffs.all()
    return wire.Tool(
        name=agent.name,
        title=agent.name,
        description=agent.description or f"Asks the agent {agent.name}.",
        input_schema=ASK_SCHEMA,
        output_schema=RESULT_SCHEMA,
        annotations=wire.ToolAnnotations(
            read_only_hint=reads_only, destructive_hint=False if reads_only else None
        ),
    )


def _workflow_tool(name: str, workflow: Workflow) -> wire.Tool:
    version = workflow.newest
    parameters = _parameters(version.text) if version is not None else {}
    properties = {key: _parameter_schema(default) for key, default in parameters.items()}
    return wire.Tool(
        name=name,
        title=workflow.name,
        description=workflow.description or f"Starts the workflow {workflow.name}.",
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [key for key, default in parameters.items() if default is None],
        },
        output_schema=RESULT_SCHEMA,
    )


@lru_cache(maxsize=200)
def _parameters(text: str) -> Mapping[str, Any]:
    """Return a definition's parameters with their defaults; a version's text never changes."""
    return read_definition(text).plan.parameters


def _parameter_schema(default: Any) -> dict[str, Any]:
    if default is None:
        return {"type": "string"}
    return {"type": JSON_TYPES.get(type(default), "string"), "default": default}


async def send(call: McpCall, name: str, arguments: dict[str, Any], client_id: str) -> Message:
    """Send what a tool call asks to a chat. Raises ApiError with the reason if it can't."""
    call.caller.require(ApiKey.Scope.ASK)
    workflow = (await call.query(workflows_by_name, call)).get(name)
    if workflow is not None:
        text = await call.query(_command, call, workflow, arguments)
        return await calls.send(call.caller, None, text, client_id=client_id)
    if not await call.query(call.caller.agents().filter(name=name).exists):
        raise ApiError(404, _("There’s no tool named %(name)s.") % {"name": name[:64]})
    try:
        asked = AskArguments.model_validate(arguments)
    except ValidationError as error:
        raise ApiError(422, _problems(error)) from error
    chat = None
    if asked.conversation is not None:
        chat = await call.query(_find_chat, call, asked.conversation)
    files = await call.query(_upload, call, asked.files)
    return await calls.send(
        call.caller, chat, asked.question, client_id=client_id, agent=name, files=files
    )


def _command(call: McpCall, workflow: Workflow, arguments: Mapping[str, Any]) -> str:
    texts = start.format_parameters(arguments)
    try:
        return start.build_request(workflow, texts, call.caller.user).query
    except start.WorkflowNotStarted as reason:
        raise ApiError(422, str(reason)) from reason


def _find_chat(call: McpCall, pk: int) -> ChatSession:
    chat = call.caller.continued_chats().filter(pk=pk).first()
    if chat is None:
        raise ApiError(404, _("There’s no conversation %(id)d.") % {"id": pk})
    if Run.objects.live().filter(topic=chat.topic).exists():
        raise ApiError(
            409, _("This conversation is still being answered. Wait for that, or stop it.")
        )
    return chat


def _upload(call: McpCall, files: list[TextFile]) -> list[int]:
    try:
        return [
            attachments.receive(
                call.caller.user, SimpleUploadedFile(file.name, file.text.encode())
            ).pk
            for file in files
        ]
    except FileRefused as reason:
        raise ApiError(422, str(reason)) from reason


def _problems(error: ValidationError) -> str:
    """Return what is wrong with the arguments, by field, for the model that wrote them."""
    problems = (
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
    )
    return _("The arguments aren’t right. %(problems)s") % {"problems": "; ".join(problems)}
