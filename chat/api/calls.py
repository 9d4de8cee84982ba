"""What a program can do with a key; every protocol asks, follows and decides through it.

The rights, limits, guardrails and the audit log are those of `agents.runs` and `chat.messages`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from agents import runs
from agents.access import api_keys, masking
from agents.catalog import agent_factory, caller_instructions
from agents.catalog.tools import client_tools
from agents.db import database, errors
from agents.db.sanitize import sanitize_text
from agents.engine.errors import QuotaExceeded
from agents.engine.events import Event
from agents.engine.loop import APPROVERS
from agents.engine.state import Message as HistoryMessage
from agents.metering import budgets
from agents.models import Agent, ApiKey, Approval, Run
from agents.models.runs.runs import API_TOPIC_PREFIX, RunQuerySet
from agents.runs import approvals, question_answers
from agents.runs.approvals import Decision, DecisionRejected
from agents.web import event_feed
from agents.web.api_access import require
from agents.web.api_errors import ApiError
from chat.errors import MessageRejected
from chat.messages import history_screening, run_factory, run_options, submission
from chat.messages.run_options import RunOptions
from chat.models import ChatSession, Message

from . import files as sent_files
from .files import SentFile

TOPIC_PREFIX = API_TOPIC_PREFIX
DOOR = "api"
MAX_STREAMS = 300  # of a key, in one process

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Caller:
    """A program with a key, acting for the key's user."""

    key: ApiKey

    @property
    def user(self) -> User:
        return self.key.user

    def require(self, scope: str) -> None:
        """Raise InsufficientScope if the key may not do this."""
        require(self.key, scope)

    def runs(self) -> QuerySet[Run]:
        """Return the runs that the key may read."""
        self.require(ApiKey.Scope.READ)
        return api_keys.visible_runs(self.key)

    def started_runs(self) -> RunQuerySet:
        """Return the user's runs that the key may continue: without `read`, its own."""
        own = Run.objects.filter(user=self.user)
        has_all = ApiKey.Scope.READ in self.key.scopes
        return own if has_all else own.filter(api_key=self.key)

    def chats(self) -> QuerySet[ChatSession]:
        """Return the chats that the key may read."""
        self.require(ApiKey.Scope.READ)
        return ChatSession.objects.for_user(self.user)

    def continued_chats(self) -> QuerySet[ChatSession]:
        """Return the chats in which the key may ask: without `read`, those of it alone.

        Otherwise it could have an agent repeat what was said there.
        """
        visible = ChatSession.objects.for_user(self.user)
        if ApiKey.Scope.READ in self.key.scopes:
            return visible
        asked = Run.objects.filter(message__session=OuterRef("pk"))
        others = asked.exclude(api_key=self.key)
        return visible.filter(Exists(asked), ~Exists(others))

    def agents(self) -> QuerySet[Agent]:
        """Return the agents that the user can ask."""
        return Agent.objects.open_to(self.user.pk).filter(enabled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a program that keeps the conversation itself.

    `overrides` are those of the run: an output schema, functions of the program. `options` are
    what users can choose, and `instructions` follow the agent's own. On a `topic` of its own, a
    conversation has one live run at a time.
    """

    text: str
    agent: str = ""
    history: Sequence[HistoryMessage] = ()  # their `files` are SentFiles
    overrides: Mapping[str, Any] | None = None
    options: RunOptions = run_factory.AGENT_DEFAULTS
    instructions: str = ""
    files: Sequence[SentFile] = ()
    topic: str = ""


async def ask(caller: Caller, question: Question) -> Run:
    """Start a run that belongs to no chat. Raises ApiError if it can't be started."""
    caller.require(ApiKey.Scope.ASK)

    async def start() -> Run:
        run = await _as_program(caller, _prepare, caller, question)
        runs.launch(run)
        return run

    # A run that was saved is launched, also if the program disconnects meanwhile.
    task = asyncio.create_task(start())
    _starting.add(task)
    task.add_done_callback(_starting.discard)
    return await asyncio.shield(task)


_starting: set[asyncio.Task[Run]] = set()


def _prepare(caller: Caller, question: Question) -> Run:
    user = caller.user
    topic = question.topic or f"{TOPIC_PREFIX}{uuid4().hex}"
    try:
        text = submission.clean_text(question.text)
        with errors.reraise_as(MessageRejected), run_factory.reject_agent_errors():
            agent = run_factory.select_agent(question.agent, user)
            overrides = _overrides(caller, agent, question)
            run_factory.check_length(agent, overrides.get("model", ""), text)
            # No guardrail has seen what the program says was asked and answered before.
            unchecked: list[HistoryMessage] = [
                {**message, "is_unjudged": True} for message in question.history
            ]
            guardrails = agent_factory.build_guardrails(agent)
            history = history_screening.screen(unchecked, guardrails)
            files = _saved_files(user, agent, topic, question.files, history)
            with files as refs, transaction.atomic():
                budgets.count_message(user)
                return runs.prepare(
                    query=text,
                    topic=topic,
                    user=user,
                    agent=agent,
                    history=history,
                    overrides=overrides,
                    files=refs,
                )
    except MessageRejected as reason:
        if isinstance(reason.__cause__, QuotaExceeded):
            raise ApiError(429, str(reason), "usage_limit_reached") from reason
        raise ApiError(422, str(reason), "message_rejected") from reason
    except runs.RunInProgress as reason:
        sentence = _("This conversation is still being answered. Wait for that, or stop it.")
        raise ApiError(409, sentence, "run_in_progress") from reason


def _overrides(caller: Caller, agent: Agent, question: Question) -> dict[str, Any]:
    """Return the run's own settings, as far as the agent allows them."""
    overrides = dict(question.overrides or {})
    overrides |= run_options.overrides(agent, question.options, caller.user)
    if client_tools.OVERRIDE in overrides and agent.mode != Agent.Mode.REACT:
        sentence = _("%(agent)s works by a plan and can’t use your functions. Send none.")
        raise ApiError(400, sentence % {"agent": agent.name}, "invalid_tools", param="tools")
    if "max_output_tokens" in overrides and agent.max_output_tokens:
        wanted = overrides["max_output_tokens"]
        overrides["max_output_tokens"] = min(wanted, agent.max_output_tokens)
    if question.instructions.strip():
        instructions = masking.mask_for_storage(agent, sanitize_text(question.instructions))
        if not agent_factory.build_guardrails(agent).accepts(instructions):
            sentence = _("A guardrail of %(agent)s blocks the instructions of your program.")
            raise ApiError(400, sentence % {"agent": agent.name}, "content_filter")
        overrides[caller_instructions.OVERRIDE] = instructions
    return overrides


@contextmanager
def _saved_files(
    user: User,
    agent: Agent,
    topic: str,
    sent: Sequence[SentFile],
    history: Sequence[HistoryMessage],
) -> Iterator[list[dict[str, Any]]]:
    """Save the files of a question and of its history, with the run that this block creates."""
    messages = [message for message in history if message.get("files")]
    if not sent and not messages:
        yield []
        return
    run_factory.check_files(agent)
    all_files = [*sent, *(file for message in messages for file in message["files"])]
    with sent_files.received(user, all_files) as received, transaction.atomic():
        refs = sent_files.save(user, agent, topic, received)
        later = iter(refs[len(sent) :])
        for message in messages:
            message["files"] = list(islice(later, len(message["files"])))
        yield refs[: len(sent)]


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


async def follow(
    caller: Caller, run: Run, after: int = 0
) -> AsyncGenerator[Event | None, None]:
    """Yield a run's events after this number as the user may see them, to its end.

    None when there were none for a second. It ends early if the key is revoked.
    """
    key = caller.key
    check_streams(caller)

    is_own = key.user_id == run.user_id

    def is_visible() -> bool:
        current_key = api_keys.reread(key)
        if current_key is None:
            return False
        return is_own or api_keys.visible_runs(current_key).filter(pk=run.pk).exists()

    async def may_still_read() -> bool:
        is_known = is_own and api_keys.is_surely_usable(key)
        return is_known or await database.run(is_visible)

    with api_keys.using(key):
        reader = await database.run(
            event_feed.open_run,
            run,
            caller.user,
            {},
            DOOR,
            may_still_read,
            api_keys.RECHECK_SECONDS,
        )
    with api_keys.open_stream(key):
        async with aclosing(event_feed.events(run, reader, after)) as events:
            async for event in events:
                yield event


def check_streams(caller: Caller) -> None:
    """Raise ApiError if the key follows too many runs at once in this process."""
    if api_keys.open_streams[caller.key.pk] >= MAX_STREAMS:
        sentence = _("This key has %(most)d open streams. Close some of them.")
        raise ApiError(429, sentence % {"most": MAX_STREAMS}, "too_many_streams")


async def stop(caller: Caller, run: Run) -> None:
    """Stop a run that the user owns, or of a chat in which they can write."""
    caller.require(ApiKey.Scope.ASK)
    if not await database.run(run.is_decidable_by, caller.user):
        raise ApiError(403, _("Only members who can write can stop this run."), "not_yours")
    with api_keys.using(caller.key):
        await runs.stop(run)


def no_such_request() -> ApiError:
    text = _("This request doesn’t exist, or you can’t answer it.")
    return ApiError(404, text, "not_found")


def waiting_approvals(caller: Caller) -> QuerySet[Approval]:
    """Return what the user can decide now."""
    caller.require(ApiKey.Scope.APPROVE)
    return Approval.objects.for_user(caller.user).waiting().select_related("run")


async def decide(caller: Caller, approval: int, decision: Decision) -> Run:
    """Decide about an approval. Raises ApiError if it was decided, or isn't the user's."""
    caller.require(ApiKey.Scope.APPROVE)
    if decision.is_approved:
        await database.run(_check_raise, caller, approval)
    try:
        with api_keys.using(caller.key):
            return await approvals.decide(caller.user, approval, decision)
    except Approval.DoesNotExist as error:
        raise ApiError(
            404, _("This request doesn’t exist, or you can’t answer it."), "not_found"
        ) from error
    except DecisionRejected as reason:
        raise ApiError(409, str(reason), "decision_rejected") from reason


def _check_raise(caller: Caller, approval: int) -> None:
    """Raise ApiError if this raises a limit that the agent doesn't let its users raise.

    A program can raise the limit of its user's run as often as its user can. Beyond that, and
    for others, an administrator decides, who is a person.
    """
    limits = Approval.objects.filter(pk=approval, why=Approval.Why.BUDGET)
    if limits.exclude(run__user=caller.user).exists():
        sentence = _("Raise the limit of another user’s run in the browser.")
        raise ApiError(403, sentence, "not_yours")
    if limits.filter(role=APPROVERS).exists():
        sentence = _("Programs can’t raise this limit any further. Do it in the browser.")
        raise ApiError(403, sentence, "limit_reached")


async def answer(
    caller: Caller, approval: int, digest: str, content: Mapping[str, Any] | None
) -> Run:
    """Answer what a running call asks its user, by field name; None declines.

    Raises ApiError if it is closed, isn't the user's, or a field is wrong.
    """
    caller.require(ApiKey.Scope.APPROVE)
    try:
        typed = await database.run(_typed_fields, caller, approval, content or {})
        action: question_answers.Action = "decline" if content is None else "accept"
        form = question_answers.Answer(digest=digest, action=action, typed=typed)
        with api_keys.using(caller.key):
            return await question_answers.submit_answer(caller.user, approval, form)
    except Approval.DoesNotExist as error:
        raise ApiError(
            404, _("This request doesn’t exist, or you can’t answer it."), "not_found"
        ) from error
    except question_answers.InvalidAnswer as reason:
        problems = " ".join(reason.problems.values())
        raise ApiError(422, f"{reason} {problems}", "invalid_answer") from reason
    except DecisionRejected as reason:
        raise ApiError(409, str(reason), "decision_rejected") from reason


def _typed_fields(caller: Caller, pk: int, content: Mapping[str, Any]) -> dict[int, list[str]]:
    """Return the answer as a page's form sends it: texts, by the number of their field."""
    asked = Approval.objects.for_user(caller.user).filter(why=Approval.Why.ELICITATION)
    row = asked.get(pk=pk)
    typed: dict[int, list[str]] = {}
    for number, field in enumerate(question_answers.form_fields(row)):
        if field.name in content:
            value = content[field.name]
            values = value if isinstance(value, list) else [value]
            typed[number] = [
                item if isinstance(item, str) else json.dumps(item) for item in values
            ]
    return typed


async def _as_program(
    caller: Caller, function: Callable[..., Result], *arguments: Any
) -> Result:
    """Run a function on the database thread, so that its runs note the key."""
    with api_keys.using(caller.key):
        waiting: Awaitable[Result] = database.run_urgent(function, *arguments)
        return await waiting
