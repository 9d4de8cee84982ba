"""Decisions about waiting calls: made once, for exactly what was displayed."""

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents import runs
from agents.access import audit, masking
from agents.catalog import agent_factory
from agents.catalog.tools import tool_grants
from agents.db import database, errors
from agents.engine import fault_injection
from agents.engine.errors import BadSchema
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.json_schema import TooManyChecks, validate_schema, violations
from agents.models import Agent, Approval, Run, RunEvent
from agents.models.types import AnyUser

from . import event_store, event_writer, plan_edits

MAX_ARGUMENTS_CHARS = 100_000
MAX_PLAN_CHARS = 1_000_000
MAX_REASON_CHARS = 2_000
MAX_ANSWER_CHARS = 10_000
MAX_RESULT_CHARS = 200_000  # of a program's function; the model gets no more of any result
MAX_ATTEMPTS = 20


class DecisionRejected(Exception):
    """Raised when a decision is rejected; the user sees the message."""


class InvalidPlan(DecisionRejected):
    """Raised when an edited plan can't be executed; `problems` says why, by step."""

    def __init__(self, problems: plan_edits.Problems) -> None:
        super().__init__(_("This plan has errors. Fix them and try again."))
        self.problems = problems


class _RunNotPaused(Exception):
    """Raised while the run is still pausing; a retry will succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision about a call. `digest` identifies what was displayed."""

    digest: str
    is_approved: bool
    arguments: str | None = None
    reason: str = ""
    action: str = ""  # "stop" at a limit; otherwise an approval raises and a rejection finishes
    always: str = ""  # where the tool is allowed from now on; a plain approval allows nothing


class TerminalApprover:
    """The user of the command line, who decides in runs without a user."""

    pk = None

    def get_username(self) -> str:
        return "terminal"


@dataclass(frozen=True, slots=True)
class AskingProgram:
    """The program that started a user's run, which alone returns its functions' results."""

    user: User

    @property
    def pk(self) -> int:
        return self.user.pk

    def get_username(self) -> str:
        return self.user.get_username()


Approver: TypeAlias = AnyUser | TerminalApprover | AskingProgram


async def decide(user: Approver, pk: int, decision: Decision) -> Run:
    """Save the decision, publish it, and resume the run if nothing else is pending.

    Raises Approval.DoesNotExist if this user can't decide it.
    """
    for _attempt in range(MAX_ATTEMPTS):
        try:
            run, event, is_resumed = await database.run(_apply, user, pk, decision)
            break
        except _RunNotPaused:
            await asyncio.sleep(0.1)
        except audit.NotRecorded as reason:
            raise DecisionRejected(str(reason)) from reason
    else:
        raise DecisionRejected(_("This run isn't ready to continue. Try again in a moment."))
    fault_injection.point("before_resume")
    if is_resumed:
        runs.resume(run)
    await event_writer.publish(run, [event])
    if decision.always:
        # The tool was just allowed, so its other pending calls, displayed too, are approved.
        for covered_pk, digest in await database.run(_covered_calls, user, pk):
            try:
                await decide(user, covered_pk, Decision(digest=digest, is_approved=True))
            except (DecisionRejected, Approval.DoesNotExist):
                continue  # decided elsewhere, or it stays pending
    return run


def _covered_calls(user: Approver, pk: int) -> list[tuple[int, str]]:
    """Return waiting calls of the same run to the same tool, as it was displayed."""
    row = _decidable_approvals(user).select_related("run").get(pk=pk)
    tool_fingerprint = _request(row, row.run).data["tool"]
    candidates = _decidable_approvals(user).filter(
        run=row.run,
        agent_name=row.agent_name,
        tool=row.tool,
        why__in=tool_grants.ELIGIBLE_REASONS,
    )
    return [
        (call.pk, call.digest)
        for call in candidates
        if call.is_waiting and _request(call, row.run).data["tool"] == tool_fingerprint
    ]


def _apply(user: Approver, pk: int, decision: Decision) -> tuple[Run, Event, bool]:
    decidable = _decidable_approvals(user)
    with errors.reraise_as(DecisionRejected):
        row = decidable.select_related("run").get(pk=pk)
        _validate(row, row.run, decision)
        if (
            row.is_budget
            and decision.is_approved
            and not isinstance(user, TerminalApprover | AskingProgram)
            and not row.can_be_raised_by(user)
        ):
            raise DecisionRejected(_("Only an administrator can raise this limit further."))
        # Before the transaction, because a long plan takes a while to parse.
        new_arguments = _edited_arguments(row, row.run, decision)
        is_changed = new_arguments is not None
    with errors.reraise_as(DecisionRejected), transaction.atomic():
        run = Run.objects.select_for_update().get(pk=row.run_id)
        approval = decidable.get(pk=pk)  # again, now that the row is locked
        _validate(approval, run, decision)
        if agent_factory.personal_data_policy(run) == Agent.PersonalData.UNKEPT:
            # The run uses the masked text as well.
            decision = replace(decision, reason=masking.mask_text(decision.reason))
            if new_arguments is not None:
                masked = masking.mask_value(json.loads(new_arguments))
                new_arguments = json.dumps(masked, ensure_ascii=False)
        event = _resolved_event(approval, run, user, decision, new_arguments)
        event_store.save([(run.pk, event)])
        if decision.always:
            _allow_tool(user, approval, run, decision)
        resumed = None if run.approvals.waiting().exists() else runs.wake(run)
        if not isinstance(user, AskingProgram):  # a result, which the trace has
            audit.record(
                user,
                audit.DECIDED,
                run,
                changed=is_changed,
                step=approval.step,
                tool=approval.tool,
                approved=decision.is_approved,
            )
        return resumed or run, event, resumed is not None


def _allow_tool(user: Approver, approval: Approval, run: Run, decision: Decision) -> None:
    """Allow the tool from now on, as it was when this request was displayed."""
    is_person = not isinstance(user, TerminalApprover | AskingProgram)
    if not decision.is_approved or not is_person or user.pk is None:
        raise DecisionRejected(_("To always allow a tool, approve its call."))
    approval.run = run
    try:
        person = get_user_model().objects.get(pk=user.pk)
        tool_grants.create(
            person, approval, _request(approval, run).data["tool"], decision.always
        )
    except tool_grants.GrantRefused as reason:
        raise DecisionRejected(str(reason)) from reason


def _decidable_approvals(user: Approver) -> QuerySet[Approval]:
    if isinstance(user, TerminalApprover):
        return Approval.objects.filter(run__user=None)
    if isinstance(user, AskingProgram):
        return Approval.objects.filter(run__user=user.pk, why=Approval.Why.CLIENT)
    return Approval.objects.for_user(user)


def _validate(approval: Approval, run: Run, decision: Decision) -> None:
    if not approval.is_waiting:
        verdict = approval.get_verdict_display()
        raise DecisionRejected(
            _("This request is already closed: %(verdict)s.") % {"verdict": verdict}
        )
    if decision.digest != approval.digest:
        raise DecisionRejected(
            _("This request has changed since you opened the page. Reload the page.")
        )
    if not run.is_waiting:
        raise _RunNotPaused
    if approval.is_question:
        # An empty or overlong answer is rejected rather than cut.
        text = decision.reason.strip()
        if decision.is_approved and not text:
            raise DecisionRejected(_("Enter an answer."))
        if len(text) > MAX_ANSWER_CHARS:
            raise DecisionRejected(
                _("Too long: %(count)d characters (max %(most)d).")
                % {"count": len(text), "most": MAX_ANSWER_CHARS}
            )


def _request(approval: Approval, run: Run) -> Event:
    """Return the latest request; it may have been requested again after a restart."""
    requests = run.events.filter(type=EventType.APPROVAL_REQUESTED, data__step=approval.step)
    return requests.latest("seq").value


def _resolved_event(
    approval: Approval, run: Run, user: Approver, decision: Decision, new_arguments: str | None
) -> Event:
    request = _request(approval, run)
    factory = event_store.event_factory(run, request.agent)
    factory.parent = request.data.get("parent")
    max_chars = MAX_ANSWER_CHARS if approval.is_question else MAX_REASON_CHARS
    if approval.is_client:
        max_chars = MAX_RESULT_CHARS
    limit_fields: dict[str, str] = {}
    if approval.is_budget:
        rejection = "stop" if decision.action == "stop" else "finish"
        limit_fields["why"] = approval.why
        limit_fields["action"] = "raise" if decision.is_approved else rejection
    return factory(
        EventType.APPROVAL_RESOLVED,
        id=approval.call_id,
        step=approval.step,
        is_approved=decision.is_approved,
        arguments=new_arguments,
        reason=decision.reason.strip()[:max_chars],
        by=user.pk,
        by_name=user.get_username(),
        **limit_fields,
    )


def _edited_arguments(approval: Approval, run: Run, decision: Decision) -> str | None:
    """Return the arguments the user wrote, if they differ from the model's."""
    if not decision.is_approved or decision.arguments is None:
        return None
    if approval.asks_person or approval.is_budget:
        return None
    max_chars = MAX_PLAN_CHARS if approval.is_plan else MAX_ARGUMENTS_CHARS
    value = _parse_object(decision.arguments, max_chars)
    if value == json.loads(approval.arguments):
        return None
    if approval.is_plan:
        capabilities = plan_edits.PlanCapabilities.of(approval)
        plan, problems = plan_edits.validate_plan(value, capabilities)
        if problems:
            raise InvalidPlan(problems)
        if plan == plan_edits.original_plan(approval):
            return None
        return json.dumps(plan.to_dict(), ensure_ascii=False)
    try:
        schema_violations = violations(validate_schema(_tool_schema(run, approval)), value)
    except (BadSchema, TooManyChecks):
        schema_violations = []  # with an unusable schema, the tool validates
    if schema_violations:
        why = "; ".join(schema_violations)
        raise DecisionRejected(
            _("The tool doesn't accept these arguments: %(why)s") % {"why": why}
        )
    return json.dumps(value, ensure_ascii=False)


def _parse_object(text: str, max_chars: int) -> dict[str, Any]:
    if len(text) > max_chars:
        raise DecisionRejected(_("The arguments are too long."))
    try:
        value = json.loads(text, parse_constant=_reject_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise DecisionRejected(_("The arguments contain an invalid character.")) from error
    except RecursionError as error:
        raise DecisionRejected(_("The arguments are nested too deeply.")) from error
    except ValueError as error:
        raise DecisionRejected(
            _("The arguments aren't valid JSON: %(why)s") % {"why": error}
        ) from error
    if not isinstance(value, dict):
        raise DecisionRejected(_("The arguments must be a JSON object: {…}."))
    return value


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} isn't valid JSON")


def _tool_schema(run: Run, approval: Approval) -> dict[str, Any]:
    """Return the tool's schema as the model was given it."""
    events = RunEvent.objects.filter(run=run, agent=approval.agent_name).order_by("-seq")
    starts = events.filter(type__in=[EventType.RUN_STARTED, EventType.HANDOFF])
    for data in starts.values_list("data", flat=True):
        for tool in data["tools"]:
            if tool["function"]["name"] == approval.tool:
                return tool["function"]["parameters"]
    # The model has found the tool by itself.
    for data in events.filter(type=EventType.STATUS).values_list("data", flat=True):
        is_unsent = data.get("kind") == StatusKind.UNSENT_TOOL and "function" in data
        if is_unsent and data["tool"] == approval.tool:
            return data["function"]["parameters"]
    return {}
