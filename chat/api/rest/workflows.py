"""Workflows that the user can start, with their parameters."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from pydantic import Field

from agents.db import database
from agents.engine.plans import read_definition
from agents.models import Workflow
from agents.web.workflows import start
from chat.api import calls

from .access import ASK, RestRequest
from .chats import StartedChat, read_started
from .idempotency import client_id, creates
from .pages import Page, PageQuery, page_of
from .schemas import Input

router = Router(tags=["Workflows"], exclude_none=True)


class WorkflowItem(Schema):
    id: int
    name: str
    description: str
    version: int
    parameters: dict[str, Any] = Field(
        description="Parameters with their defaults; those without a value are required."
    )


class NewWorkflowRun(Input):
    parameters: dict[str, Any] = Field(
        default_factory=dict, examples=[{"topic": "gardens"}], max_length=100
    )


def _usable(request: RestRequest) -> QuerySet[Workflow]:
    return (
        Workflow.objects.for_user(request.auth.user)
        .filter(enabled=True, versions__isnull=False)
        .distinct()
    )


def _item(workflow: Workflow) -> WorkflowItem:
    version = workflow.newest
    assert version is not None
    return WorkflowItem(
        id=workflow.pk,
        name=workflow.name,
        description=workflow.description,
        version=version.number,
        parameters=dict(read_definition(version.text).plan.parameters),
    )


@router.get(
    "",
    auth=ASK,
    response=Page[WorkflowItem],
    operation_id="listWorkflows",
    summary="List workflows",
)
def list_workflows(request: RestRequest, query: Query[PageQuery]) -> Page[WorkflowItem]:
    """The workflows that the key’s user can start."""
    return page_of(_usable(request), query, _item)


@router.get(
    "/{int:workflow_id}",
    auth=ASK,
    response=WorkflowItem,
    operation_id="getWorkflow",
    summary="Read about a workflow",
)
def get_workflow(request: RestRequest, workflow_id: int) -> WorkflowItem:
    return _item(get_object_or_404(_usable(request), pk=workflow_id))


@router.post(
    "/{int:workflow_id}/start",
    auth=ASK,
    response={201: StartedChat},
    operation_id="startWorkflow",
    summary="Start a workflow",
)
@creates(read_started)
async def start_workflow(request: RestRequest, workflow_id: int, data: NewWorkflowRun) -> int:
    """Start it in a chat of its own. The response doesn’t wait for the result."""
    command = await database.run(_command, request, workflow_id, data.parameters)
    message = await calls.send(request.auth, None, command, client_id=client_id(request))
    return message.pk


def _command(request: RestRequest, pk: int, parameters: dict[str, Any]) -> str:
    workflow = get_object_or_404(_usable(request), pk=pk)
    texts = {name: start.format_value(value) for name, value in parameters.items()}
    return start.build_request(workflow, texts, request.auth.user).query
