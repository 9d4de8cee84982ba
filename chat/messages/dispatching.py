"""Starts the runs of messages: at once, or in turn from the queue."""

import logging

from django.db import OperationalError, transaction

from agents import runs
from agents.access import api_keys, masking
from agents.db import database
from agents.db.periodic import periodic
from agents.engine import fault_injection
from agents.models import Run
from agents.runs import pubsub
from chat import attachments
from chat.errors import MessageRejected
from chat.models import ChatSession, Message
from chat.sessions import branches, session_state

from . import queue, run_factory
from .run_options import RunOptions

logger = logging.getLogger(__name__)


async def dispatch(session: ChatSession, message: Message) -> None:
    """Start the message's run, or the queue, and notify every page of the chat."""
    fault_injection.point("after_message_save")
    if message.is_queued:
        await pubsub.publish(session.topic, "queue.changed")
        await answer_next(session)  # the run it waits for may have just ended
        return
    if message.run is not None:
        runs.launch(message.run)
    await pubsub.publish(session.topic, "message.added", message=message.pk, run=message.run_id)


@periodic("queued messages", every=5)
async def answer_waiting(run: Run | None = None) -> None:
    """Start queued messages: in this run's chat, or wherever no run is live."""
    for session in await database.run(queue.ready_sessions, run):
        try:
            await answer_next(session)
        except Exception:  # others must not wait for a failure
            logger.exception("Can't start the next message of chat %s.", session.pk)


async def answer_next(session: ChatSession) -> None:
    """Start the chat's next queued message, if no run is live."""
    message = await database.run(_claim_next, session)
    if message is not None:
        await dispatch(session, message)


def _claim_next(session: ChatSession) -> Message | None:
    """Return the next message with its new run, claimed once across processes.

    A message that can't be answered waits, along with later ones of the same author.
    """
    with transaction.atomic():
        if not session_state.lock(session) or session_state.live_run(session):
            return None
        queue.drop_inactive(session)
        blocked_authors: set[int] = set()
        for message in queue.queued_messages(session):
            if message.author_id in blocked_authors:
                continue
            if (started := _start_message(session, message)) is not None:
                return started
            blocked_authors.add(message.author_id)
    return None


def _start_message(session: ChatSession, message: Message) -> Message | None:
    """Return the message with its run, or None if it can't have one."""
    try:
        with transaction.atomic(), api_keys.using(queue.api_key_of(message)):
            agent = run_factory.select_agent(message.agent_name, message.author)
            # It continues the branch that its sender saw, or sees now if that one is gone.
            tree = branches.read(message.session_id)
            parent = message.parent_id
            if parent is None or parent not in tree:
                parent = branches.visible_leaf(tree, message.session_id, message.author_id)
            message.parent_id = tree.newest_leaf(parent)
            branches.keep_readers(message.session, tree, message.parent_id)
            path = tree.path(message.parent_id)
            options = RunOptions.load(message.options)
            files = attachments.sent_with(message.pk) if message.has_files else []
            question = message.text or attachments.names_of(files)
            run = run_factory.prepare(
                session, message.author, question, agent, path, options, files
            )
            message.text = masking.mask_for_storage(agent, message.text)
            return queue.attach_run(message, run)
    except MessageRejected:
        return None  # the page says why, and a later attempt may succeed
    except OperationalError:
        raise  # not the message's fault
    except Exception:  # others must not wait for a failure
        logger.exception("Can't start a run for message %s.", message.pk)
        return None
