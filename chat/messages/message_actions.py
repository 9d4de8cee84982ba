"""What users do with single messages: edit, correct, regenerate, delete, switch branches."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import runs
from agents.access import masking
from agents.catalog import agent_factory
from agents.db import database, errors
from agents.models import Run
from agents.runs import pubsub
from chat.errors import MessageRejected
from chat.models import ChatSession, Message
from chat.sessions import branches, message_deletion, titles

from . import dispatching, run_factory, submission
from .run_options import RunOptions
from .submission import Page


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion would delete."""

    message: Message
    below: int  # messages after it, on all branches
    may_delete_below: bool  # others' messages only the chat's owner can delete

    @property
    def count(self) -> int:
        return self.below + 1


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted, and where it can be restored from."""

    count: int
    removal: int


async def edit(
    session: ChatSession,
    user: User,
    pk: int | None,
    text: str,
    client_id: str,
    agent: str = "",
    *,
    page: Page | None = None,
) -> Message:
    """Send a message again with another text, as a new branch beside it."""
    original = await database.run(find_own, session, user, pk)
    agent = agent or await database.run(_agent_of, original, user)
    message = await submission.submit(
        session, user, text, client_id, agent, page=page, instead_of=original.pk
    )
    await titles.renew(session, message)
    return message


async def regenerate(
    session: ChatSession,
    user: User,
    pk: int | None,
    client_id: str,
    agent: str = "",
    model: str = "",
    *,
    page: Page | None = None,
) -> Message:
    """Have a message answered again, as a new branch beside it.

    Without an agent or a model, those of the answer are used, with its other options. Another
    agent has its own, and none of this changes what the chat uses.
    """
    original = await database.run(_find, session, pk)
    options = await database.run(_options_for, original, user, agent, model)
    agent = agent or await database.run(_agent_of, original, user)
    text = f" {original.text}"  # as it is: an @ in it was read when it was sent
    return await submission.submit(
        session,
        user,
        text,
        client_id,
        agent,
        options=options,
        page=page,
        instead_of=original.pk,
    )


async def correct(session: ChatSession, user: User, pk: int | None, text: str) -> Message:
    """Correct the text of a message, without a new answer; its run has the original."""
    message = await database.run(_save_correction, session, user, pk, text)
    await pubsub.publish(session.topic, "message.corrected", message=message.pk)
    return message


async def show_branch(session: ChatSession, user: User, pk: int | None) -> bool:
    """Show this user the branch of a message, on all their pages."""
    if pk is None or not await database.run(branches.show, session, user, pk):
        return False
    await pubsub.publish(session.topic, "branch.shown", user=user.pk)
    return True


async def delete(session: ChatSession, user: User, pk: int | None, *, below: bool) -> Deleted:
    """Delete a message and its answer, or everything below it too. A live run is stopped."""
    deleted, run = await database.run(_remove, session, user, pk, below)
    await pubsub.publish(session.topic, "messages.deleted")
    if below:  # members on other branches see the queue, too
        await pubsub.publish(session.topic, "queue.changed")
    if run is not None:
        await runs.stop(run)
        await dispatching.answer_next(session)  # queued messages waited for this run
    return deleted


def find_own(session: ChatSession, user: User, pk: int | None) -> Message:
    """Return a message that this user can edit; raise MessageRejected."""
    message = _find(session, pk)
    if message.author_id != user.pk:
        raise MessageRejected(_("You can only edit your own messages."))
    return message


def plan_deletion(session: ChatSession, user: User, pk: int | None) -> Deletion:
    """Return what deleting this message would delete; raise MessageRejected."""
    message = _find_deletable(session, user, pk)
    below = set(branches.read(session.pk).descendants(message.pk))
    return Deletion(message, len(below), bool(below) and _may_delete(session, user, below))


def _find(session: ChatSession, pk: int | None) -> Message:
    posted = session.messages.posted().select_related("run")
    message = posted.filter(pk=pk).first() if pk is not None else None
    if message is None:
        raise MessageRejected(_("This message no longer exists."))
    return message


def _find_deletable(session: ChatSession, user: User, pk: int | None) -> Message:
    message = _find(session, pk)
    if user.pk not in {message.author_id, session.user_id}:
        raise MessageRejected(_("Only the author and the chat's owner can delete a message."))
    return message


def _agent_of(message: Message, user: User) -> str:
    """Return the agent that answered, if this user can still use it."""
    name = message.run.agent_name if message.run is not None else ""
    return name if name and run_factory.find_agent(name, user) else ""


def _options_for(message: Message, user: User, agent: str, model: str) -> dict[str, Any] | None:
    """Return the options to answer a message again with; None are the chat's."""
    if model:
        answering = run_factory.select_agent(agent or _agent_of(message, user), user)
        if not answering.allows_model_choice:
            raise MessageRejected(
                _("%(agent)s doesn't allow another model. Choose another agent.")
                % {"agent": answering.name}
            )
    if agent:
        return {"model": model}
    run = message.run
    if run is None or run.is_imported:
        return {"model": model} if model else None
    used = RunOptions.load(run.overrides).dump()
    return {"model": ""} | used | ({"model": model} if model else {})


def _save_correction(session: ChatSession, user: User, pk: int | None, text: str) -> Message:
    text = submission.clean_text(text)
    with errors.reraise_as(MessageRejected), transaction.atomic():
        submission.lock(session, user)
        message = find_own(session, user, pk)
        agent = message.run.agent if message.run is not None else None
        if agent is not None:
            # Later answers read the corrected text.
            inspected = agent_factory.build_guardrails(agent).inspect(text, "input")
            if inspected.is_blocked:
                raise MessageRejected(
                    _("Not saved: a guardrail of %(agent)s blocks this text.")
                    % {"agent": agent.name}
                )
            text = masking.mask_for_storage(agent, inspected.text)
        if text != message.text:
            message.text = text
            message.edited_at = timezone.now()
            message.save(update_fields=["text", "edited_at"])
            message_deletion.forget_summaries(session)
    return message


def _may_delete(session: ChatSession, user: User, pks: set[int]) -> bool:
    """Whether the user owns the chat or wrote all of these."""
    by_others = session.messages.filter(pk__in=pks).exclude(author=user)
    return user.pk == session.user_id or not by_others.exists()


def _remove(
    session: ChatSession, user: User, pk: int | None, below: bool
) -> tuple[Deleted, Run | None]:
    """Hide the messages, which are erased soon; return them and their live run."""
    with errors.reraise_as(MessageRejected), transaction.atomic():
        submission.lock(session, user)
        message = _find_deletable(session, user, pk)
        pks = {message.pk}
        if below:
            pks.update(branches.read(session.pk).descendants(message.pk))
            if not _may_delete(session, user, pks):
                raise MessageRejected(
                    _(
                        "Other members wrote below this message, so only the chat's owner "
                        "can delete it."
                    )
                )
        live_run = Run.objects.live().filter(message__in=pks).defer("history").first()
        if below:  # what others have queued continues on the branch that they see
            session.messages.queued().filter(parent__in=pks, author=user).delete()
        removal = message_deletion.discard(session, user, pks)
    return Deleted(len(pks), removal.pk), live_run
