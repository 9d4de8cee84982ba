"""What a workflow can use now: tools, agents, and people with a role."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.contrib.auth.models import Group, User

from agents.catalog import tool_factory
from agents.engine.plans import (
    MAX_PROBLEMS,
    ExecutionPlan,
    PlanProblem,
    Schemas,
    missing_resources,
)
from agents.engine.tool import TEXT_INPUT_SCHEMA
from agents.models import Agent, ToolRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    tools: Schemas
    agents: frozenset[str]
    roles: frozenset[str]

    def find_missing(self, plan: ExecutionPlan) -> list[PlanProblem]:
        """Return what this plan needs and doesn't exist, up to a limit."""
        found = missing_resources(plan, self.tools, self.agents, self.roles)
        return list(islice(found, MAX_PROBLEMS))

    def missing_names(self, plan: ExecutionPlan) -> dict[str, list[str]]:
        """Return the names of missing tools, agents and roles, by kind."""
        known = {"tool": self.tools, "agent": self.agents, "role": self.roles}
        wanted = {
            kind: sorted({name for step in plan.walk() if (name := getattr(step, kind))})
            for kind in known
        }
        lacking = {
            kind: [n for n in names if (n.lower() if kind == "role" else n) not in known[kind]]
            for kind, names in wanted.items()
        }
        return {kind: names for kind, names in lacking.items() if names}


def available(user: User | None = None) -> Resources:
    """Return what this user can use; without one, everything."""
    agents = Agent.objects.usable_by(user).filter(enabled=True)
    groups = Group.objects.values_list("name", flat=True)
    roles = {role for agent in agents for role in agent.role_names}
    return Resources(
        tools=_tool_schemas(user),
        agents=frozenset(agent.name for agent in agents),
        roles=frozenset(roles | {name.lower() for name in groups}),
    )


def _tool_schemas(user: User | None) -> Schemas:
    rows = ToolRegistration.objects.usable_by(user).filter(enabled=True, is_gone=False)
    local = {
        tool.name: getattr(tool, "parameters", TEXT_INPUT_SCHEMA)
        for tool in tool_factory.build_tools(rows)
    }
    remote = [row for row in rows if row.source == ToolRegistration.Source.MCP]
    return local | {row.name: _definition_parameters(row.definition) for row in remote}


def _definition_parameters(definition: Any) -> Mapping[str, Any]:
    function = definition if isinstance(definition, dict) else {}
    parameters = function.get("function", function).get("parameters")
    return parameters if isinstance(parameters, dict) else {}
