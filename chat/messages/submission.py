"""Messages: checked, and saved with a run or in the queue."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import masking
from agents.db import database, errors
from agents.db.compiled_queries import compiled_query
from agents.db.configuration_rows import one_configuration
from agents.db.conflicts import retry_on_conflict
from agents.db.fast_writes import insert, update
from agents.db.installation import configured
from agents.db.sanitize import sanitize_text
from agents.metering import budgets
from chat import attachments
from chat.errors import ClientIdConflict, MessageRejected, MessageTooLong
from chat.models import Attachment, ChatSession, Message
from chat.sessions import branches, rights, session_state
from chat.sessions.listing import filing

from . import mentions, run_factory, run_options
from .dispatching import dispatch
from .message_factory import Draft, build_message
from .run_options import RunOptions

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 200_000


class Page(Protocol):
    """The open page that a message was sent from; called on the database thread."""

    language: str | None

    def recheck(self) -> tuple[ChatSession, User]:
        """Return the chat and the user as they are now; raise if access was lost."""

    def on_saved(self, message: Message) -> None: ...


_submitting: set[asyncio.Task[Message]] = set()


def submit(
    session: ChatSession | None,
    user: User,
    text: str,
    client_id: str,
    agent: str = "",
    *,
    options: Mapping[str, Any] | None = None,
    files: Sequence[int] = (),
    page: Page | None = None,
    instead_of: int | None = None,
    is_temporary: bool = False,
    project: int | None = None,
) -> Awaitable[Message]:
    """Save a message and have it answered, even if its sender disconnects meanwhile.

    Without a session a new chat starts with it. With `instead_of`, it is a new branch beside
    that message with its files, and its options don't become the chat's. `options` may have a
    model, an effort and a temperature; without any of them, the chat's are used. `files` are
    the ids of uploads. Raises MessageRejected.
    """
    save_message: Callable[[], Message] = partial(
        save,
        session,
        user,
        text,
        client_id,
        agent,
        options=options,
        files=files,
        page=page,
        instead_of=instead_of,
        is_temporary=is_temporary,
        project=project,
    )

    async def save_and_dispatch() -> Message:
        message = await database.run_urgent(save_message)
        if message.is_new:
            await dispatch(message.session, message)
        return message

    task = asyncio.create_task(save_and_dispatch())
    _submitting.add(task)
    task.add_done_callback(_submitting.discard)
    return asyncio.shield(task)


@retry_on_conflict
def save(
    session: ChatSession | None,
    user: User,
    text: str,
    client_id: str,
    agent: str = "",
    *,
    options: Mapping[str, Any] | None = None,
    files: Sequence[int] = (),
    page: Page | None = None,
    instead_of: int | None = None,
    is_temporary: bool = False,
    project: int | None = None,
) -> Message:
    """Save a message with its run, or in the queue while another run is live.

    The same client id returns the same message.
    """
    with translation.override(page.language) if page else nullcontext():
        if page is not None:
            session, user = page.recheck()
        draft = Draft(
            session=session,
            user=user,
            text=text,
            client_id=client_id,
            agent=agent,
            files=files,
            instead_of=instead_of,
            is_temporary=is_temporary,
            project=project,
        )
        draft = _interpret(draft, options)
        try:
            with errors.reraise_as(MessageRejected), transaction.atomic():
                if session is not None:
                    lock(session, user)
                message = _find_duplicate(draft)
                if message is None:
                    _check_rate(user)
                    attached: list[Attachment] = []
                    if files:
                        attached = attachments.claim(user, files, session)
                    elif instead_of is not None:
                        attached = attachments.copies_of(instead_of)
                    with one_configuration():
                        message = build_message(draft, attached)
                    insert(message)
                    _complete(message, draft, attached)
        except IntegrityError:  # sent twice, and the other request was faster
            message = None if session is not None else _find_duplicate(draft)
            if message is None:
                raise
        if page is not None:
            page.on_saved(message)
        return message


def _interpret(draft: Draft, options: Mapping[str, Any] | None) -> Draft:
    """Return the draft with its text as it is saved, and the agent and options it asks for."""
    mention = mentions.parse(draft.text, draft.user)
    text = _clean_question(draft.text, draft)
    agent = draft.agent
    chosen = None
    if mention is None:
        chosen = run_options.parse(options)
    else:
        text = _clean_question(mention.text, draft)
        agent = mention.agent
    is_mention = mention is not None or mentions.is_mention(draft.instead_of)
    if is_mention and chosen is None:  # the chat's options are for the chat's agent
        chosen = RunOptions()
    return replace(draft, text=text, agent=agent, chosen=chosen, is_mention=is_mention)


def _clean_question(text: str, draft: Draft) -> str:
    """Return the text for storage; with files, it can be empty."""
    if not text.strip():
        replaced = draft.instead_of
        if draft.files or (replaced is not None and attachments.sent_with(replaced)):
            return ""
    return clean_text(text)


def _complete(message: Message, draft: Draft, files: Sequence[Attachment]) -> None:
    """Save what depends on a new message: its files, its branch and the chat's options."""
    session = draft.session
    message.is_new = True
    if files:
        attachments.attach(message, files)
    if draft.instead_of is not None:
        branches.enter(message)
    if session is not None:
        changes: dict[str, Any] = {"updated_at": timezone.now()}
        if draft.chosen is not None and not draft.is_mention and draft.instead_of is None:
            session.options = draft.chosen.dump()
            changes["options"] = session.options
        update(ChatSession, changes, id=session.pk)
        filing.bring_back(session, draft.user)


def lock(session: ChatSession, user: User) -> None:
    """Lock the chat for this transaction; raise MessageRejected without write access."""
    if not session_state.lock(session):
        raise MessageRejected(_("This chat no longer exists."))
    if not rights.may_write(session, user):
        raise MessageRejected(str(rights.READ_ONLY_MESSAGE))


def _find_duplicate(draft: Draft) -> Message | None:
    """Return the message already sent with this id: a double click, or a lost reply."""
    client_id = draft.client_id
    session = draft.session
    message = None
    is_id = 0 < len(client_id) <= 64 and client_id == sanitize_text(client_id)
    if is_id:
        message = next(iter(_by_client_id(draft.user.pk, client_id)), None)
    # In another chat it isn't a duplicate, and treating it as one would lose the text.
    if not is_id or (message and session and message.session_id != session.pk):
        raise MessageRejected(_("The page sent an invalid request. Reload it and try again."))
    # Neither is different text; but an agent may save it masked, so that counts as equal.
    if message and message.text not in {draft.text, masking.mask_value(draft.text)}:
        raise ClientIdConflict(
            _("Not sent: a different message was sent with the same ID. Send it again.")
        )
    return message


@compiled_query
def _by_client_id(author: int, client_id: str) -> QuerySet[Message]:
    return Message.objects.filter(author=author, client_id=client_id)


def _check_rate(user: User) -> None:
    """Raise MessageRejected if the user has reached the rate limit."""
    with run_factory.reject_agent_errors():
        budgets.count_message(user)
    limit = configured.MESSAGES_PER_MINUTE.value
    if limit and budgets.count_last_minute(Message.objects.filter(author=user)) >= limit:
        sentence = ngettext(
            "You've sent %(most)d message in the last minute. Wait a moment, "
            "then send it again.",
            "You've sent %(most)d messages in the last minute. Wait a moment, "
            "then send it again.",
            limit,
        )
        raise MessageRejected(sentence % {"most": limit})


def clean_text(text: str) -> str:
    """Return the text for storage; raise MessageRejected if it is empty or too long."""
    text = sanitize_text(text).strip()
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise MessageRejected(_("Enter a message first."))
    if (size := len(text.encode())) > MAX_MESSAGE_BYTES:
        sentence = _(
            "This message is too long (%(size)d kB). The limit is %(most)d kB. Attach it as a "
            "file, or shorten it."
        )
        raise MessageTooLong(
            sentence % {"size": size // 1000, "most": MAX_MESSAGE_BYTES // 1000},
            100 * MAX_MESSAGE_BYTES // size,
        )
    return text
