"""What a program can do with a key; every protocol asks, follows and decides through it.

The rights, limits, guardrails and the audit log are those of `agents.runs` and `chat.messages`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents import runs
from agents.access import api_keys
from agents.catalog import agent_factory
from agents.db import database, errors
from agents.engine.events import Event
from agents.engine.state import Message as HistoryMessage
from agents.metering import budgets
from agents.models import Agent, ApiKey, Approval, Run
from agents.runs import approvals
from agents.runs.approvals import Decision, DecisionRejected
from agents.web import event_feed
from agents.web.api_access import require
from agents.web.api_errors import ApiError
from chat.errors import MessageRejected
from chat.messages import history_screening, run_factory, submission
from chat.models import ChatSession, Message

TOPIC_PREFIX = "api."
DOOR = "api"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Caller:
    """A program with a key, acting for the key's user."""

    key: ApiKey

    @property
    def user(self) -> User:
        return self.key.user

    def require(self, scope: str) -> None:
        """Raise PermissionDenied if the key may not do this."""
        require(self.key, scope)

    def runs(self) -> QuerySet[Run]:
        """Return the runs that the key may read."""
        self.require(ApiKey.Scope.READ)
        return api_keys.visible_runs(self.key)

    def chats(self) -> QuerySet[ChatSession]:
        """Return the chats that the key may read."""
        self.require(ApiKey.Scope.READ)
        return ChatSession.objects.for_user(self.user)

    def agents(self) -> QuerySet[Agent]:
        """Return the agents that the user can ask."""
        return Agent.objects.open_to(self.user.pk).filter(enabled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a program that keeps the conversation itself.

    `overrides` are those of the run: a model, an effort, a temperature, an output schema.
    """

    text: str
    agent: str = ""
    history: Sequence[HistoryMessage] = ()
    overrides: Mapping[str, Any] | None = None


async def ask(caller: Caller, question: Question) -> Run:
    """Start a run that belongs to no chat. Raises ApiError if it can't be started."""
    caller.require(ApiKey.Scope.ASK)
    run = await _as_program(caller, _prepare, caller, question)
    runs.launch(run)
    return run


def _prepare(caller: Caller, question: Question) -> Run:
    user = caller.user
    try:
        text = submission.clean_text(question.text)
        with errors.reraise_as(MessageRejected), run_factory.reject_agent_errors():
            budgets.count_message(user)
            agent = run_factory.select_agent(question.agent, user)
            overrides = dict(question.overrides or {})
            run_factory.check_length(agent, overrides.get("model", ""), text)
            # No guardrail has seen what the program says was asked and answered before.
            unchecked: list[HistoryMessage] = [
                {**message, "is_unjudged": True} for message in question.history
            ]
            guardrails = agent_factory.build_guardrails(agent)
            return runs.prepare(
                query=text,
                topic=f"{TOPIC_PREFIX}{uuid4().hex}",
                user=user,
                agent=agent,
                history=history_screening.screen(unchecked, guardrails),
                overrides=overrides,
            )
    except MessageRejected as reason:
        raise ApiError(422, str(reason), "message_rejected") from reason


async def send(
    caller: Caller,
    chat: ChatSession | None,
    text: str,
    *,
    client_id: str = "",
    agent: str = "",
    options: Mapping[str, Any] | None = None,
    files: Sequence[int] = (),
    project: int | None = None,
) -> Message:
    """Send a message to a chat, or to a new one; the same `client_id` sends it once."""
    caller.require(ApiKey.Scope.ASK)
    try:
        with api_keys.using(caller.key):
            return await submission.submit(
                chat,
                caller.user,
                text,
                client_id or uuid4().hex,
                agent,
                options=options,
                files=files,
                project=project,
            )
    except MessageRejected as reason:
        raise ApiError(422, str(reason), "message_rejected") from reason


async def follow(caller: Caller, run: Run, after: int = 0) -> AsyncIterator[Event | None]:
    """Yield a run's events after this number as the user may see them, to its end.

    None when there were none for a second. It ends early if the key is revoked.
    """
    key = caller.key

    def may_still_read() -> bool:
        if not api_keys.is_still_usable(key):
            return False
        return (
            key.user_id == run.user_id or api_keys.visible_runs(key).filter(pk=run.pk).exists()
        )

    reader = await database.run(
        event_feed.open_run,
        run,
        caller.user,
        {},
        DOOR,
        may_still_read,
        api_keys.RECHECK_SECONDS,
    )
    async for event in event_feed.events(run, reader, after):
        yield event


async def stop(caller: Caller, run: Run) -> None:
    """Stop a run that the user owns, or of a chat in which they can write."""
    caller.require(ApiKey.Scope.ASK)
    if not await database.run(run.is_decidable_by, caller.user):
        raise ApiError(403, "Only members who can write may stop this run.", "not_yours")
    await runs.stop(run)


def waiting_approvals(caller: Caller) -> QuerySet[Approval]:
    """Return what the user can decide now."""
    caller.require(ApiKey.Scope.APPROVE)
    return Approval.objects.for_user(caller.user).waiting().select_related("run")


async def decide(caller: Caller, approval: int, decision: Decision) -> Run:
    """Decide about an approval. Raises ApiError if it was decided, or isn't the user's."""
    caller.require(ApiKey.Scope.APPROVE)
    try:
        return await approvals.decide(caller.user, approval, decision)
    except Approval.DoesNotExist as error:
        raise ApiError(404, "There is no such approval.", "not_found") from error
    except DecisionRejected as reason:
        raise ApiError(409, str(reason), "decision_rejected") from reason


async def _as_program(
    caller: Caller, function: Callable[..., Result], *arguments: Any
) -> Result:
    """Run a function on the database thread, so that its runs note the key."""
    with api_keys.using(caller.key):
        waiting: Awaitable[Result] = database.run_urgent(function, *arguments)
        return await waiting
