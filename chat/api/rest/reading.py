"""Runs as a program may read them: masked like pages, and each view of another's is audited."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.shortcuts import get_object_or_404
from ninja import Schema
from pydantic import Field

from agents.access import audit, masking
from agents.access.masking import Row
from agents.db.sentences import translate
from agents.models import Run
from agents.models.types import AnyUser
from agents.review.run_list.listing import DEFERRED_FIELDS
from agents.web.origin import origin_of
from agents.web.presentation import trace_url
from chat.api.calls import DOOR, Caller

from .access import RestRequest
from .schemas import Usage, one_of


class RunItem(Schema):
    """A run as lists have it."""

    id: int
    status: Annotated[str, one_of(Run.Status)]
    agent: str
    model: str
    question: str
    chat: int | None = Field(None, description="Its chat, if it is in one of the user's.")
    steps: int
    tool_calls: int
    usage: Usage
    seconds: float | None = Field(None, description="How long it took, once it has ended.")
    started_at: datetime
    ended_at: datetime | None = None
    is_masked: bool = Field(description="Whether personal data is masked: another's run.")
    url: str = Field(description="Its trace, for people.")


class RunDetails(RunItem):
    """A run with its answer and how it ended."""

    answer: str | None = None
    output: Any = Field(None, description="The structured answer, if the agent has a schema.")
    stopped_reason: str | None = None
    detail: str | None = Field(None, description="What happened, if it has no answer.")
    advice: str | None = Field(None, description="What to do about that.")
    options: dict[str, Any] = Field(description="Model, effort and temperature, if chosen.")
    agent_version: int | None = None
    workflow: int | None = Field(None, description="The workflow that it executes, if any.")
    parameters: dict[str, Any] = Field(description="Values the workflow was started with.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How a user reads one run."""

    is_masked: bool
    hides_private: bool
    hides_rules: bool

    @classmethod
    def of(cls, run: Run, user: AnyUser) -> "Reader":
        return cls(
            is_masked=masking.is_masked_for(run, user, {}),
            hides_private=masking.hides_private_parts(run, user),
            hides_rules=not masking.sees_rules(user),
        )

    @property
    def options(self) -> dict[str, bool]:
        return {
            "is_masked": self.is_masked,
            "hides_private": self.hides_private,
            "hides_rules": self.hides_rules,
        }

    def visible(self, row: Row) -> Row:
        return masking.visible_row(row, **self.options)


def open_run(caller: Caller, pk: int) -> tuple[Run, Reader]:
    """Return a run that the key may read; others are a 404, like missing ones."""
    run = get_object_or_404(caller.runs(), pk=pk)
    audit.record_view(caller.user, run, DOOR)
    return run, Reader.of(run, caller.user)


def run_details(request: RestRequest, pk: int) -> RunDetails:
    run, reader = open_run(request.auth, pk)
    return details_of(request, run, reader)


def own_run_details(request: RestRequest, pk: int) -> RunDetails:
    """Return a run that this request has started, which needs no other scope."""
    run = get_object_or_404(Run, pk=pk)
    return details_of(request, run, Reader.of(run, request.auth.user))


def details_of(request: RestRequest, run: Run, reader: Reader) -> RunDetails:
    visible = reader.visible(run)
    return RunDetails(
        **_item_fields(request, run, reader),
        answer=visible.answer or None,
        output=visible.output,
        stopped_reason=run.stopped_reason or None,
        detail=translate(visible.detail) or None,
        advice=translate(visible.advice) or None,
        options=run.chosen_options,
        agent_version=run.agent_version,
        workflow=run.workflow.workflow_id if run.workflow else None,
        parameters=visible.parameters,
    )


def run_items(request: RestRequest, pks: Iterable[int]) -> list[RunItem]:
    """Return runs in this order, with only what lists have."""
    runs = Run.objects.filter(pk__in=pks).defer(*DEFERRED_FIELDS)
    by_pk = {run.pk: run for run in masking.load_origins(runs)}
    to_item: Callable[[Run], RunItem] = partial(run_item, request)
    return [to_item(by_pk[pk]) for pk in pks if pk in by_pk]


def run_item(request: RestRequest, run: Run) -> RunItem:
    return RunItem(**_item_fields(request, run, Reader.of(run, request.auth.user)))


def _item_fields(request: RestRequest, run: Run, reader: Reader) -> dict[str, Any]:
    topic, _dot, number = run.topic.partition(".")
    is_in_chat = topic == "chat" and number.isdecimal() and not reader.is_masked
    return {
        "id": run.pk,
        "status": run.status,
        "agent": run.agent_name,
        "model": run.model,
        "question": reader.visible(run).query,
        "chat": int(number) if is_in_chat else None,
        "steps": run.step_count,
        "tool_calls": run.tool_calls,
        "usage": Usage(
            prompt_tokens=run.prompt_tokens,
            completion_tokens=run.completion_tokens,
            cost_usd=run.cost,
        ),
        "seconds": run.seconds,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "is_masked": reader.is_masked,
        "url": f"{origin_of(request)}{trace_url(run.pk)}",
    }
