"""What people decide about calls that wait: once, and for exactly what they were shown."""

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agents import runs
from agents.access import audit, masking
from agents.catalog import agent_factory
from agents.db import database, errors
from agents.engine import fault_injection as faults
from agents.engine.errors import BadSchema
from agents.engine.events import Event, Type
from agents.engine.json_schema import TooManyChecks, usable, violations
from agents.models import Agent, Approval, Run, RunEvent

from . import event_store, event_writer, plan_edits

MOST_ARGUMENTS = 100_000
MOST_PLAN = 1_000_000
MOST_REASON = 2_000
MOST_ANSWER = 10_000
PATIENCE = 20


class NotDecided(Exception):
    """A decision was not taken; the text says why, to the person who made it."""


class NoSuchPlan(NotDecided):
    """A plan that a person has changed cannot be carried out; `problems` says why, by step."""

    def __init__(self, problems: plan_edits.Problems) -> None:
        super().__init__(_("This plan cannot be carried out as it is."))
        self.problems = problems


class _NotYet(Exception):
    """The run is about to pause; in a moment it can be decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a person says about a call. `digest` is of what they had before their eyes."""

    digest: str
    is_approved: bool
    arguments: str | None = None
    reason: str = ""


class AtTerminal:
    """Whoever sits at this machine: they decide what is asked in runs that are nobody's."""

    pk = None

    def get_username(self) -> str:
        return "terminal"


async def decide(user, pk: int, word: Word) -> Run:
    """Take the word, tell everyone, and let the run go on if nothing else waits.

    Raises Approval.DoesNotExist for what is not this person's to decide.
    """
    for _attempt in range(PATIENCE):
        try:
            run, event, goes_on = await database.ask(_take, user, pk, word)
            break
        except _NotYet:
            await asyncio.sleep(0.1)
        except audit.NotRecorded as reason:
            raise NotDecided(str(reason)) from reason
    else:
        raise NotDecided(_("This run is not ready to go on. Try again in a moment."))
    faults.point("P12")
    if goes_on:
        runs.resume(run)
    await event_writer.tell(run, [event])
    return run


def _take(user, pk: int, word: Word) -> tuple[Run, Event, bool]:
    mine = _decidable(user)
    with errors.refusing(NotDecided):
        shown = mine.select_related("run").get(pk=pk)
        _check(shown, shown.run, word)
        # A long plan takes its time to be read, and nobody else is to wait for that.
        changed = _changed(shown, shown.run, word)
    with errors.refusing(NotDecided), transaction.atomic():
        run = Run.objects.select_for_update().get(pk=shown.run_id)
        approval = mine.get(pk=pk)  # again, now that nobody else can change it
        _check(approval, run, word)
        event = _event(approval, run, user, *_kept(run, word, changed))
        event_store.keep([(run.pk, event)])
        woken = None if run.approvals.waiting().exists() else runs.wake(run)
        told = {"step": approval.step, "tool": approval.tool, "approved": word.is_approved}
        audit.record(user, audit.DECIDED, run, changed=changed is not None, **told)
        return woken or run, event, woken is not None


def _decidable(user):
    if isinstance(user, AtTerminal):
        return Approval.objects.filter(run__user=None)
    return Approval.objects.for_user(user)


def _check(approval: Approval, run: Run, word: Word) -> None:
    if not approval.is_waiting:
        said = approval.get_verdict_display()
        raise NotDecided(_("This was decided already: %(verdict)s.") % {"verdict": said})
    if word.digest != approval.digest:
        raise NotDecided(_("This is not the call that you were shown. Reload the page."))
    if not run.is_waiting:
        raise _NotYet
    if approval.is_question:
        _check_answer(word)


def _check_answer(word: Word) -> None:
    """What somebody wrote is told as they wrote it, or not at all."""
    text = word.reason.strip()
    if word.is_approved and not text:
        raise NotDecided(_("Write your answer first."))
    if len(text) > MOST_ANSWER:
        raise NotDecided(
            _("This is too long: %(count)d characters, and at most %(most)d can be kept.")
            % {"count": len(text), "most": MOST_ANSWER}
        )


def _kept(run: Run, word: Word, changed: str | None) -> tuple[Word, str | None]:
    """What a person wrote as it may be kept of this run, which goes on with just that."""
    if agent_factory.promise(run) != Agent.PersonalData.UNKEPT:
        return word, changed
    word = replace(word, reason=masking.masked_text(word.reason))
    if changed is None:
        return word, None
    value = masking.masked_value(json.loads(changed))
    return word, json.dumps(value, ensure_ascii=False)


def _event(approval: Approval, run: Run, user, word: Word, changed: str | None) -> Event:
    questions = run.events.filter(type=Type.APPROVAL_REQUESTED, data__step=approval.step)
    asked = questions.latest("seq").value  # it may have been asked again, after a restart
    stamp = event_store.stamp_of(run, asked.agent)
    stamp.parent = asked.data.get("parent")
    return stamp(
        Type.APPROVAL_RESOLVED,
        id=approval.call_id,
        step=approval.step,
        is_approved=word.is_approved,
        arguments=changed,
        reason=word.reason.strip()[: MOST_ANSWER if approval.is_question else MOST_REASON],
        by=user.pk,
        by_name=user.get_username(),
    )


def _changed(approval: Approval, run: Run, word: Word) -> str | None:
    """The arguments that the person wrote, if they are others than the model's."""
    if not word.is_approved or word.arguments is None or approval.asks_person:
        return None
    value = _object(word.arguments, MOST_PLAN if approval.is_plan else MOST_ARGUMENTS)
    if value == json.loads(approval.arguments):
        return None
    if approval.is_plan:
        return _changed_plan(approval, value)
    if faults := _faults(_schema(run, approval), value):
        why = "; ".join(faults)
        raise NotDecided(_("The tool does not take these arguments: %(why)s") % {"why": why})
    return json.dumps(value, ensure_ascii=False)


def _changed_plan(approval: Approval, value: dict[str, Any]) -> str | None:
    plan, problems = plan_edits.checked(value, plan_edits.Means.of(approval))
    if problems:
        raise NoSuchPlan(problems)
    if plan == plan_edits.original(approval):
        return None
    return json.dumps(plan.to_dict(), ensure_ascii=False)


def _faults(schema: dict[str, Any], value: dict[str, Any]) -> list[str]:
    """What is wrong with the arguments; of a schema nobody can use, the tool itself judges."""
    try:
        return violations(usable(schema), value)
    except (BadSchema, TooManyChecks):
        return []


def _object(text: str, most: int) -> dict[str, Any]:
    if len(text) > most:
        raise NotDecided(_("These arguments are too long."))
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise NotDecided(_("There is half a character in the arguments.")) from error
    except RecursionError as error:
        raise NotDecided(_("The arguments are nested too deeply.")) from error
    except ValueError as error:
        raise NotDecided(
            _("The arguments are not valid JSON: %(why)s") % {"why": error}
        ) from error
    if not isinstance(value, dict):
        raise NotDecided(_("The arguments must be a JSON object: {…}."))
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _schema(run: Run, approval: Approval) -> dict[str, Any]:
    """What the tool takes, as the model was told."""
    told = [Type.RUN_STARTED, Type.HANDOFF]
    events = RunEvent.objects.filter(run=run, type__in=told, agent=approval.agent_name)
    for data in events.order_by("-seq").values_list("data", flat=True):
        for tool in data["tools"]:
            if tool["function"]["name"] == approval.tool:
                return tool["function"]["parameters"]
    return {}
