"""Functions of the calling program: an agent's tools for one run, which the program calls.

The run waits while the program works, in a row of its own that only this program's user can
answer. With the last result, the same run continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents.catalog.tools.client_tools import OVERRIDE
from agents.db import database
from agents.db.sanitize import parse_id
from agents.engine.errors import BadSchema
from agents.engine.json_schema import validate_schema
from agents.models import ApiKey, Approval, Run
from agents.runs import approvals, event_store
from agents.runs.approvals import AskingProgram, Decision, DecisionRejected
from agents.web.api_errors import ApiError

from .calls import Caller

MAX_FUNCTIONS = 128
MAX_DEFINITION_CHARS = 200_000
PREFIX = "call"

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class Function(BaseModel):
    """A function that a program offers."""

    model_config = ConfigDict(extra="ignore")

    name: Name
    description: str | None = Field(None, max_length=10_000)
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call that the program makes; its id leads back to the run that waits for it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult:
    """What a function returned, or the error it failed with."""

    call: str
    text: str
    is_error: bool = False


def overrides(functions: Sequence[Function]) -> dict[str, Any]:
    """Return these functions as a run saves them. Raises ApiError if they can't be used."""
    if len(functions) > MAX_FUNCTIONS:
        raise _invalid(
            _("A request can have up to %(most)d functions.") % {"most": MAX_FUNCTIONS}
        )
    definitions: list[dict[str, Any]] = []
    for function in functions:
        if any(function.name == definition["name"] for definition in definitions):
            raise _invalid(_("Two functions are named %(name)s.") % {"name": function.name})
        schema = function.parameters or {"type": "object", "properties": {}}
        try:
            parameters = dict(validate_schema(schema))
        except BadSchema as reason:
            raise _invalid(f"{function.name}: {reason}") from reason
        definitions.append(
            {
                "name": function.name,
                "description": function.description or "",
                "parameters": parameters,
            }
        )
    if len(str(definitions)) > MAX_DEFINITION_CHARS:
        raise _invalid(_("The definitions of the functions are too long."))
    return {OVERRIDE: definitions} if definitions else {}


def calls_of(run: Run) -> list[FunctionCall]:
    """Return the calls that the run waits for."""
    return [
        FunctionCall(id=call_id(run.pk, row.step), name=row.tool, arguments=row.arguments)
        for row in _waiting(run.pk).order_by("pk")
    ]


def call_id(run: int, step: int) -> str:
    """Return the id of a call as the program sees it."""
    return f"{PREFIX}_{run}_{step}"


def run_of(caller: Caller, call_ids: Sequence[str]) -> Run | None:
    """Return the caller's run that waits for the first of these calls, if there is one."""
    run, _step = _parse(call_ids[0]) if call_ids else (0, 0)
    if not run:
        return None
    own = caller.started_runs().waiting().filter(pk=run)
    return own.filter(approvals__in=_waiting(run)).first()


async def resume(caller: Caller, run: Run, results: Sequence[FunctionResult]) -> int:
    """Give a waiting run the results of all its calls, so that it continues.

    Returns the number of its last event before that. Raises ApiError if one is missing.
    """
    caller.require(ApiKey.Scope.ASK)
    rows, after = await database.run(_waiting_rows, run)
    texts = {result.call: result for result in results}
    missing = [id for id in rows if id not in texts]
    unknown = [id for id in texts if id not in rows]
    if missing:
        sentence = _("Send the results of all calls. Missing: %(ids)s.")
        raise _invalid(sentence % {"ids": ", ".join(missing)}, "missing_results")
    if unknown:
        sentence = _("No call with the ID %(id)s waits for a result.")
        raise _invalid(sentence % {"id": unknown[0][:100]}, "call_not_found")
    program = AskingProgram(caller.user)
    for id, row in rows.items():
        result = texts[id]
        decision = Decision(
            digest=row.digest, is_approved=not result.is_error, reason=result.text
        )
        try:
            await approvals.decide(program, row.pk, decision)
        except (Approval.DoesNotExist, DecisionRejected) as reason:
            raise ApiError(409, str(reason), "decision_rejected") from reason
    return after


def _waiting_rows(run: Run) -> tuple[dict[str, Approval], int]:
    rows = {call_id(run.pk, row.step): row for row in _waiting(run.pk).order_by("pk")}
    return rows, event_store.last_seq(run)


def _waiting(run: int) -> QuerySet[Approval]:
    return Approval.objects.waiting().filter(run=run, why=Approval.Why.CLIENT)


def _parse(id: str) -> tuple[int, int]:
    """Return the run and the step in a call's id; zeros if it has none."""
    prefix, run, step = [*id.split("_"), "", "", ""][:3]
    run_pk = parse_id(run)
    number = parse_id(step)
    return (run_pk, number) if prefix == PREFIX and run_pk and number else (0, 0)


def _invalid(sentence: str, code: str = "invalid_tools") -> ApiError:
    return ApiError(400, sentence, code, param="tools")
