"""What the model gets from a draft: instructions, what the engine adds, and its tools."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.catalog import custom_instructions
from agents.catalog.agent_factory import tool_selection
from agents.catalog.language_models import model_setups, planner_factory
from agents.catalog.tools import search_library
from agents.console.admin_classes.json_field import format_json
from agents.console.tool_admin.tool_settings import load_tool
from agents.engine.loop import Handoff, OutputSchema
from agents.engine.privacy import Pseudonymizer
from agents.engine.state import AgentState
from agents.engine.tool import Tool
from agents.engine.tool_selection import CallToolTool, FindToolsTool, ToolSelector
from agents.knowledge import scope
from agents.llm import tokens
from agents.models import Agent, AgentTool
from agents.tools.search import SearchTool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A part of what the model gets; `condition` says when it is added."""

    title: str
    text: str
    condition: str = ""


def parts(form: Any, user: User) -> list[PromptPart]:
    """Return the parts in their order; fields with errors are as published."""
    form.is_valid()
    agent = form.instance
    chosen = form.cleaned_data
    links = chosen.get("given") or []
    prompt_parts = [
        PromptPart(
            title=_("Instructions"),
            text=planner_factory.agent_instructions(agent),
            condition="" if agent.instructions else _("Default instructions"),
        )
    ]
    if any(link.tool.name == SearchTool.name for link in links):
        # The list of collections as this user would get it.
        collections = {row.pk for row in chosen.get("collections") or ()}
        search_scope = scope.for_run(user.pk, "", agent, topics=(), chosen=collections)
        if text := search_library.announcement(search_scope).strip():
            condition = _("The collections that the user can open")
            prompt_parts.append(
                PromptPart(title=_("Documents"), text=text, condition=condition)
            )
    if agent.accepts_custom_instructions:
        part = PromptPart(
            title=_("Custom instructions"),
            text=custom_instructions.compose(_("(from the user's profile)"), "").strip(),
            condition=_("If the user has custom instructions"),
        )
        prompt_parts.append(part)
    if agent.uses_memory:
        part = PromptPart(
            title=_("Memory"),
            text=_("(memories that fit the message)"),
            condition=_("If there are relevant memories about the user"),
        )
        prompt_parts.append(part)
    if agent.learns:
        part = PromptPart(
            title=_("Lessons"),
            text=_("(up to 3 lessons that fit the message)"),
            condition=_("If there are lessons from similar messages"),
        )
        prompt_parts.append(part)
    return [*prompt_parts, *_tool_parts(agent, links, chosen.get("handoffs") or ())]


def count_tokens(prompt_parts: Iterable[PromptPart]) -> int:
    return tokens.count("\n\n".join(prompt_part.text for prompt_part in prompt_parts))


def _tool_parts(
    agent: Agent, links: Iterable[AgentTool], handoffs: Iterable[Agent]
) -> list[PromptPart]:
    """Return the tools as the model gets them; of many, those that every request has."""
    rows = [link.configured_tool() for link in links if link.tool.enabled]
    loaded = [(row, load_tool(row)) for row in rows]
    tools: list[Any] = [
        SimpleNamespace(
            name=row.name,
            description=row.description or tool.description,
            parameters=dict(tool.parameters),
        )
        for row, tool in loaded
        if tool is not None
    ]
    tools += [Handoff(other.name, cast(Any, None), other.description) for other in handoffs]
    limits = tool_selection.limits()
    is_react = agent.mode == Agent.Mode.REACT
    can_select = is_react and agent.tool_selection == Agent.ToolSelection.AUTO
    if not can_select or not ToolSelector(limits).applies_to(tools):
        return _added_by_planner(agent, tools)
    pinned = tool_selection.pinned_names(links)
    constant = [tool for tool in tools if tool.name in pinned or isinstance(tool, Handoff)]
    constant_names = {tool.name for tool in constant}
    constant += [FindToolsTool(ToolSelector(), list), CallToolTool()]
    sentence = _(
        "Of %(count)s tools, up to %(most)s are sent: those below, and those that fit the "
        "message. The model finds the others with find_tools."
    )
    return [
        PromptPart(
            title=_("Tools"),
            text=sentence % {"count": len(tools), "most": limits.sent},
            condition=_("Depends on the message"),
        ),
        *_added_by_planner(agent, constant),
        PromptPart(
            title=_("Other tools"),
            text="\n".join(tool.name for tool in tools if tool.name not in constant_names),
            condition=_("Sent if they fit the message"),
        ),
    ]


def _added_by_planner(agent: Agent, tools: list[Tool]) -> list[PromptPart]:
    """Return the format of tool calls and answers, as the engine sends them."""
    is_hidden = agent.personal_data == Agent.PersonalData.HIDDEN
    planner, *_fallbacks = planner_factory.build_planners(
        agent,
        model_setups.model_name(agent),
        pseudonymizer=Pseudonymizer() if is_hidden else None,
    )
    request = planner.with_instructions("").request("?", AgentState(), tools)
    system = [message["content"] for message in request.messages if message["role"] == "system"]
    added = [PromptPart(title=_("Format"), text=text) for text in system if text.strip()]
    for tool in request.tools or ():
        function = tool["function"]
        text = f"{function['description']}\n\n{format_json(function['parameters'])}"
        added.append(PromptPart(title=function["name"], text=text, condition=_("Tool")))
    if agent.output_schema is not None:
        text = OutputSchema(agent.output_schema).instructions()
        condition = _("In a last step, if the provider can't enforce the schema")
        added.append(PromptPart(title=_("Output schema"), text=text, condition=condition))
    return added
