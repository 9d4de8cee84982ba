"""What the model gets from a draft: instructions, what the engine adds, and its tools."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.catalog import custom_instructions, model_setups, planner_factory, search_library
from agents.catalog.agent_factory import tool_selection
from agents.engine.loop import Handoff, OutputSchema
from agents.engine.privacy import Pseudonymizer
from agents.engine.state import AgentState
from agents.engine.tool import Tool
from agents.engine.tool_selection import CallToolTool, FindToolsTool, ToolSelector
from agents.knowledge import scope
from agents.llm import tokens
from agents.models import Agent, AgentTool
from agents.tools.search import SearchTool

from ..json_field import format_json
from ..tool_settings import load_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A part of what the model gets; `about` says when it is added."""

    title: str
    text: str
    about: str = ""


def parts(form: Any, user: User) -> list[PromptPart]:
    """Return the parts in their order; fields with errors are as published."""
    form.is_valid()
    agent = form.instance
    chosen = form.cleaned_data
    links = chosen.get("given") or []
    prompt_parts = [_instructions(agent)]
    if documents := _documents(agent, links, chosen.get("collections") or (), user):
        prompt_parts.append(documents)
    if agent.accepts_custom_instructions:
        prompt_parts.append(_custom_instructions())
    if agent.uses_memory:
        prompt_parts.append(_memory())
    if agent.learns:
        prompt_parts.append(_experiences())
    tools = _tools(links, chosen.get("handoffs") or ())
    if not _chooses(agent, tools):
        return [*prompt_parts, *_added_by_planner(agent, tools)]
    pinned = tool_selection.pinned_names(links)
    sent, others = _divided(tools, pinned)
    return [
        *prompt_parts,
        _tool_choice(len(tools)),
        *_added_by_planner(agent, sent),
        _others(others),
    ]


def count_tokens(prompt_parts: Iterable[PromptPart]) -> int:
    return tokens.count("\n\n".join(part.text for part in prompt_parts))


def _instructions(agent: Agent) -> PromptPart:
    about = _("Default instructions") if not agent.instructions else ""
    text = planner_factory.agent_instructions(agent)
    return PromptPart(title=_("Instructions"), text=text, about=about)


def _documents(
    agent: Agent, links: Iterable[AgentTool], chosen: Iterable[Any], user: User
) -> PromptPart | None:
    """Return the list of collections as you would get it."""
    if not any(link.tool.name == SearchTool.name for link in links):
        return None
    collections = {row.pk for row in chosen}
    search_scope = scope.for_run(user.pk, "", agent, topics=(), chosen=collections)
    text = search_library.announcement(search_scope).strip()
    about = _("The collections that the user can open")
    return PromptPart(title=_("Documents"), text=text, about=about) if text else None


def _custom_instructions() -> PromptPart:
    text = custom_instructions.compose(_("(from the user's profile)"), "").strip()
    about = _("If the user has custom instructions")
    return PromptPart(title=_("Custom instructions"), text=text, about=about)


def _memory() -> PromptPart:
    about = _("If something relevant is remembered about the user")
    text = _("(notes that fit the question)")
    return PromptPart(title=_("Memory"), text=text, about=about)


def _experiences() -> PromptPart:
    about = _("If similar questions have taught something")
    text = _("(up to 3 experiences that fit the question)")
    return PromptPart(title=_("Experiences"), text=text, about=about)


def _tools(links: Iterable[AgentTool], handoffs: Iterable[Agent]) -> list[Tool]:
    rows = [link.configured_tool() for link in links if link.tool.enabled]
    own = [(row, load_tool(row)) for row in rows]
    found = [
        SimpleNamespace(
            name=row.name,
            description=row.description or tool.description,
            parameters=dict(tool.parameters),
        )
        for row, tool in own
        if tool is not None
    ]
    others = [Handoff(one.name, cast(Any, None), one.description) for one in handoffs]
    return cast(list[Tool], [*found, *others])


def _chooses(agent: Agent, tools: list[Tool]) -> bool:
    """Whether the model is only sent the tools that fit a question."""
    if agent.tool_selection != Agent.ToolSelection.AUTO or agent.mode != Agent.Mode.REACT:
        return False
    return ToolSelector(tool_selection.limits()).applies_to(tools)


def _divided(tools: list[Tool], pinned: frozenset[str]) -> tuple[list[Tool], list[Tool]]:
    """Return the tools of every request, and those that depend on the question."""
    sent_names = {t.name for t in tools if t.name in pinned or isinstance(t, Handoff)}
    constant: list[Tool] = [FindToolsTool(ToolSelector(), list), CallToolTool()]
    sent = [tool for tool in tools if tool.name in sent_names]
    return [*sent, *constant], [tool for tool in tools if tool.name not in sent_names]


def _tool_choice(count: int) -> PromptPart:
    most = tool_selection.limits().sent
    sentence = _(
        "Of %(count)s tools, up to %(most)s are sent: those below, and those that fit the "
        "question. The model finds the others with find_tools."
    )
    text = sentence % {"count": count, "most": most}
    return PromptPart(title=_("Tools"), text=text, about=_("Depends on the question"))


def _others(tools: list[Tool]) -> PromptPart:
    text = "\n".join(tool.name for tool in tools)
    about = _("Sent if they fit the question")
    return PromptPart(title=_("Other tools"), text=text, about=about)


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
    found = [PromptPart(title=_("Format"), text=text) for text in system if text.strip()]
    found += [_tool_part(tool["function"]) for tool in request.tools or ()]
    if agent.output_schema is not None:
        text = OutputSchema(agent.output_schema).instructions()
        about = _("In a last step, if the provider can't enforce the schema")
        found.append(PromptPart(title=_("Output schema"), text=text, about=about))
    return found


def _tool_part(function: dict[str, Any]) -> PromptPart:
    text = f"{function['description']}\n\n{format_json(function['parameters'])}"
    return PromptPart(title=function["name"], text=text, about=_("Tool"))
