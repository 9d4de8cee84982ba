"""What a workflow can use now: tools, agents, and people with a role."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.contrib.auth.models import Group, User

from agents.catalog.tools import tool_factory
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
        problems = missing_resources(plan, self.tools, self.agents, self.roles)
        return list(islice(problems, MAX_PROBLEMS))

    def missing_names(self, plan: ExecutionPlan) -> dict[str, list[str]]:
        """Return the names of missing tools, agents and roles, by kind."""
        available_names = {"tool": self.tools, "agent": self.agents, "role": self.roles}
        missing: dict[str, list[str]] = {}
        for kind, present in available_names.items():
            used_names = {name for step in plan.walk() if (name := getattr(step, kind))}
            names = [
                name
                for name in sorted(used_names)
                if (name.lower() if kind == "role" else name) not in present
            ]
            if names:
                missing[kind] = names
        return missing


def available(user: User | None = None) -> Resources:
    """Return what this user can use; without one, everything."""
    agents = Agent.objects.usable_by(user).filter(enabled=True)
    groups = Group.objects.values_list("name", flat=True)
    roles = {role for agent in agents for role in agent.role_names}
    registrations = ToolRegistration.objects.usable_by(user).filter(enabled=True, is_gone=False)
    tools: dict[str, Mapping[str, Any]] = {
        tool.name: getattr(tool, "parameters", TEXT_INPUT_SCHEMA)
        for tool in tool_factory.build_tools(registrations)
    }
    for row in registrations:
        if row.source == ToolRegistration.Source.MCP:
            definition = row.definition if isinstance(row.definition, dict) else {}
            parameters = definition.get("function", definition).get("parameters")
            tools[row.name] = parameters if isinstance(parameters, dict) else {}
    return Resources(
        tools=tools,
        agents=frozenset(agent.name for agent in agents),
        roles=frozenset(roles | {name.lower() for name in groups}),
    )
