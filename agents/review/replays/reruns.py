"""Reruns: repeats a run up to a step and continues with changes."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from agents import runs
from agents.access import audit, masking, permissions
from agents.catalog import agent_factory, custom_instructions
from agents.catalog.language_models import model_setups, planner_factory
from agents.db.sentences import translate
from agents.engine.errors import QuotaExceeded
from agents.engine.events import EventType
from agents.engine.tool_selection import CONSTANT_TOOLS
from agents.models import Agent, AgentStep, Run

RERUN_PERMISSION = "agents.rerun_runs"
AGENT_DEFAULT = "agent"
MAX_LIVE_RERUNS = 5


class RerunRejected(Exception):
    """Raised when a run can't be rerun; the user sees the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunOptions:
    """The options of a rerun, by name."""

    instructions: str
    model: str
    fallback: str
    tools: list[str]
    guardrails: list[str]


class RerunSetup:
    """What a run used, and what can replace it now."""

    def __init__(self, run: Run, user: int | None = None) -> None:
        if run.agent is None or not run.agent.enabled:
            raise RerunRejected(
                _("The agent of this run was deleted or disabled, so you can't run it again.")
            )
        if run.agent_id in permissions.restrictions_for(user).agents:
            raise RerunRejected(_("You don't have access to the agent of this run."))
        self.user = user
        self.run = run
        self.agent: Agent = run.agent

    @cached_property
    def tools(self) -> list[str]:
        """The tools to choose from; none for a workflow, which defines its own."""
        return [] if self.run.workflow_id else agent_factory.tool_names(self.agent, self.user)

    @cached_property
    def guardrails(self) -> list[str]:
        return agent_factory.guardrail_names()

    @cached_property
    def models(self) -> list[str]:
        """The models this installation uses, because they cost money."""
        restricted = permissions.restrictions_for(self.user).agents
        agents = Agent.objects.filter(enabled=True).exclude(pk__in=restricted)
        used = [model_setups.model_names(agent) for agent in agents]
        names = {name for names in used for name in names}
        return sorted({self.run.model, *names, *model_setups.model_labels()})

    @property
    def before(self) -> RerunOptions:
        """The options as the run started, as far as still available."""
        start_data = self._start_data
        tool_names = _tool_names(start_data)
        disabled_guardrails = self.run.overrides.get("guardrails_off", ())
        return RerunOptions(
            instructions=custom_instructions.remove(start_data.get("instructions"))
            or planner_factory.agent_instructions(self.agent),
            model=self.run.model,
            fallback=self.run.overrides.get("fallback_models", AGENT_DEFAULT),
            tools=[name for name in self.tools if name in tool_names]
            if start_data
            else self.tools,
            guardrails=[name for name in self.guardrails if name not in disabled_guardrails],
        )

    @property
    def now(self) -> RerunOptions:
        """The options of the current agent."""
        return RerunOptions(
            instructions=planner_factory.agent_instructions(self.agent),
            model=model_setups.model_name(self.agent),
            fallback=AGENT_DEFAULT,
            tools=self.tools,
            guardrails=self.guardrails,
        )

    @property
    def missing_tools(self) -> list[str]:
        """Tools the run had and its agent no longer has."""
        tool_names = _tool_names(self._start_data)
        return [] if self.run.workflow_id else sorted(tool_names - set(self.tools))

    def overrides(self, options: RerunOptions) -> dict[str, Any]:
        """Return the options that differ from the current agent."""
        agent = self.agent
        overrides: dict[str, Any] = {}
        if options.instructions and options.instructions != planner_factory.agent_instructions(
            agent
        ):
            overrides["instructions"] = options.instructions
        if options.model != model_setups.model_name(agent):
            overrides["model"] = options.model
        if options.fallback != AGENT_DEFAULT:
            overrides["fallback_models"] = options.fallback
        if set(options.tools) != set(self.tools):
            overrides["tools"] = sorted(options.tools)
        if disabled_guardrails := [
            name for name in self.guardrails if name not in options.guardrails
        ]:
            overrides["guardrails_off"] = disabled_guardrails
        for name in ("effort", "temperature"):
            if name in self.run.overrides:
                overrides[name] = self.run.overrides[name]
        return overrides

    @cached_property
    def _start_data(self) -> dict[str, Any]:
        events = self.run.events.filter(type=EventType.RUN_STARTED).order_by("seq")
        return events.values_list("data", flat=True).first() or {}


def can_rerun(user: User, run: Run) -> bool:
    """Whether the user can rerun it: their own, or with a permission for others'."""
    return run.user_id == user.pk or user.has_perm(RERUN_PERMISSION)


def can_override(user: User) -> bool:
    """Whether more than the tools may differ from the current agent.

    Otherwise a user could rerun without a guardrail that blocked them, or choose expensive
    models.
    """
    return user.has_perm(RERUN_PERMISSION)


def nearest_step(run: Run, number: int) -> int:
    """Return this step, or the nearest one before it with nothing in progress.

    Parallel calls and the work of another agent are in progress, and what a guardrail stopped
    is checked again.
    """
    end_events = run.events.filter(type=EventType.STEP).order_by("seq")
    end_seqs = dict(end_events.values_list("data__step", "seq"))
    nearest = 1
    busy_until = 0.0
    was_blocked = False
    for step in run.steps.filter(number__lte=number).order_by("number"):
        if step.parent is None and step.first_seq > busy_until and not was_blocked:
            nearest = step.number
        is_guardrail = step.kind == AgentStep.Kind.GUARDRAIL
        end_seq = step.first_seq if is_guardrail else end_seqs.get(step.number, math.inf)
        busy_until = max(busy_until, end_seq)
        was_blocked = step.status == AgentStep.Status.BLOCKED
    return nearest


@transaction.atomic
def prepare_once(
    run: Run, step: int, options: RerunOptions, user: User, token: str
) -> tuple[Run, bool]:
    """Return the run and whether it is new: the same form sent twice gives the same."""
    get_user_model().objects.select_for_update().get(pk=user.pk)  # locks out concurrent forms
    topic = _topic(token, user.pk, run.pk, step, asdict(options))
    if (existing := Run.objects.filter(user=user, topic=topic).first()) is not None:
        return existing, False
    live_reruns = Run.objects.live().without_experiments()
    live_reruns = live_reruns.filter(user=user, origin_step__isnull=False)
    if live_reruns.count() >= MAX_LIVE_RERUNS:
        raise RerunRejected(
            _(
                "You already have %(most)d reruns in progress. Wait for one to finish, "
                "or stop one."
            )
            % {"most": MAX_LIVE_RERUNS}
        )
    return prepare(run, step, options, user, topic), True


def prepare(run: Run, step: int, options: RerunOptions, user: User, topic: str = "") -> Run:
    """Create the rerun; those of others' questions are audited."""
    setup = RerunSetup(run, user.pk)
    try:
        rerun = runs.prepare_rerun(
            run,
            topic=topic or _topic(uuid4().hex),
            step=nearest_step(run, step),
            overrides=setup.overrides(options),
            user=user,
            agent=setup.agent,
        )
    except (model_setups.ModelNotConfigured, QuotaExceeded) as error:
        raise RerunRejected(f"{translate(str(error))} {translate(error.advice)}") from error
    if masking.asker_id(run) != user.pk:
        audit.record(user, audit.RERUN, run, run=rerun.pk, step=rerun.origin_step)
    return rerun


def _topic(*values: Any) -> str:
    """Return a topic from the whole form: a page can send other values with the same token."""
    digest = sha256(json.dumps(values, sort_keys=True).encode(errors="replace")).hexdigest()
    return f"rerun.{digest}"


def _tool_names(start_data: Mapping[str, Any]) -> set[str]:
    """Return the tools a run had, also those that its model could only find."""
    names = {tool["function"]["name"] for tool in start_data.get("tools", ())}
    return (names | {*start_data.get("unsent_tools", ())}) - {*CONSTANT_TOOLS}
