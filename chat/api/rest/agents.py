"""Agents that the user can ask, and their versions."""

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from pydantic import Field

from agents.catalog import agent_factory
from agents.catalog.language_models import model_setups
from agents.models import Agent, AgentVersion

from .access import ASK, CONFIGURE, RestRequest
from .pages import Page, PageQuery, page_of, to_page

router = Router(tags=["Agents"], exclude_none=True)

VIEW_PERMISSION = "agents.view_agent"


class AgentItem(Schema):
    id: int
    name: str = Field(description="How it is chosen in messages and runs.")
    description: str
    model: str
    is_default: bool = Field(description="Whether it answers if no agent is chosen.")
    allows_model_choice: bool
    allows_parameter_choice: bool
    example_questions: list[str]
    version: int


class VersionItem(Schema):
    number: int
    author: str | None = None
    note: str
    created_at: datetime


class VersionDetails(VersionItem):
    settings: dict[str, Any]


def _agent_item(agent: Agent, default: Agent) -> AgentItem:
    questions = agent.example_questions.splitlines()
    return AgentItem(
        id=agent.pk,
        name=agent.name,
        description=agent.description,
        model=model_setups.model_name(agent),
        is_default=agent == default,
        allows_model_choice=agent.allows_model_choice,
        allows_parameter_choice=agent.allows_parameter_choice,
        example_questions=[question.strip() for question in questions if question.strip()],
        version=agent.version,
    )


def _version_fields(version: AgentVersion) -> dict[str, Any]:
    return {
        "number": version.number,
        "author": version.author.get_username() if version.author else None,
        "note": version.note,
        "created_at": version.created_at,
    }


def _versions(request: RestRequest, agent: int) -> QuerySet[AgentVersion]:
    """Return the versions that the user can read in the console."""
    user = request.auth.user
    if not (user.is_staff and user.has_perm(VIEW_PERMISSION)):
        raise PermissionDenied
    row = get_object_or_404(Agent, pk=agent)
    return row.versions.select_related("author")


@router.get(
    "", auth=ASK, response=Page[AgentItem], operation_id="listAgents", summary="List agents"
)
def list_agents(request: RestRequest, query: Query[PageQuery]) -> Page[AgentItem]:
    """The agents that the key’s user can ask."""
    default = agent_factory.default_agent(request.auth.user.pk)
    return page_of(request.auth.agents(), query, lambda agent: _agent_item(agent, default))


@router.get(
    "/{int:agent_id}",
    auth=ASK,
    response=AgentItem,
    operation_id="getAgent",
    summary="Read about an agent",
)
def get_agent(request: RestRequest, agent_id: int) -> AgentItem:
    default = agent_factory.default_agent(request.auth.user.pk)
    return _agent_item(get_object_or_404(request.auth.agents(), pk=agent_id), default)


@router.get(
    "/{int:agent_id}/versions",
    auth=CONFIGURE,
    response=Page[VersionItem],
    operation_id="listAgentVersions",
    summary="List an agent’s versions",
)
def list_versions(
    request: RestRequest, agent_id: int, query: Query[PageQuery]
) -> Page[VersionItem]:
    """Newest first. The user needs permission to view agents in the console."""
    versions = _versions(request, agent_id).order_by("-number")
    if query.last is not None:
        versions = versions.filter(number__lt=query.last)
    found = list(versions.defer("snapshot")[: query.limit + 1])
    return to_page(
        found, query, lambda row: VersionItem(**_version_fields(row)), lambda row: row.number
    )


@router.get(
    "/{int:agent_id}/versions/{int:number}",
    auth=CONFIGURE,
    response=VersionDetails,
    operation_id="getAgentVersion",
    summary="Read a version of an agent",
)
def get_version(request: RestRequest, agent_id: int, number: int) -> VersionDetails:
    version = get_object_or_404(_versions(request, agent_id), number=number)
    return VersionDetails(**_version_fields(version), settings=version.snapshot)
