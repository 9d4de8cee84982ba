"""Messages: checked, and saved with a run or in the queue."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents import budgets
from agents.access import masking
from agents.catalog import agent_factory
from agents.db import database, errors
from agents.db.compiled_queries import compiled_query
from agents.db.conflicts import repeated
from agents.db.fast_writes import insert, update
from agents.db.sanitize import sanitize_text
from agents.engine import fault_injection
from agents.installation import configured
from agents.models import Project
from chat import attachments
from chat.errors import ClientIdConflict, MessageRejected
from chat.listing import filing
from chat.models import Attachment, ChatSession, Message
from chat.sessions import branches, rights, session_state, temporary, titles

from . import mentions, queue, run_factory, run_options
from .dispatching import dispatch
from .run_options import RunOptions

logger = logging.getLogger(__name__)

RATE_WINDOW = timedelta(minutes=1)
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
    sent = (session, user, text, client_id, agent)
    saving: Callable[[], Message] = partial(
        save,
        *sent,
        options=options,
        files=files,
        page=page,
        instead_of=instead_of,
        is_temporary=is_temporary,
        project=project,
    )
    task = asyncio.create_task(_save_and_dispatch(saving))
    _submitting.add(task)
    task.add_done_callback(_submitting.discard)
    return asyncio.shield(task)


async def _save_and_dispatch(saving: Callable[[], Message]) -> Message:
    message = await database.run_urgent(saving)
    if message.is_new:
        await dispatch(message.session, message)
    return message


@repeated
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
        mention, text = mentions.parse(text, user), _clean_question(text, files, instead_of)
        is_mention = mention is not None or mentions.is_mention(instead_of)
        if mention is not None:
            text = _clean_question(mention.text, files, instead_of)
            agent = mention.agent
        chosen = run_options.parse(options) if mention is None else None
        if is_mention and chosen is None:  # the chat's options are for the chat's agent
            chosen = RunOptions()
        try:
            with errors.reraise_as(MessageRejected), transaction.atomic():
                if session is not None:
                    _lock(session, user)
                message = _find_duplicate(user, text, client_id, session)
                if message is None:
                    _check_rate(user)
                    sent = (session, user, text, client_id, agent)
                    attached = _claim_files(user, session, files, instead_of)
                    message = _build(*sent, chosen, instead_of, is_temporary, attached, project)
                    message.is_mention = is_mention
                    message.has_files = bool(attached)
                    insert(message)
                    message.is_new = True
                    if attached:
                        attachments.attach(message, attached)
                    if instead_of is not None:
                        branches.enter(message)
                if message.is_new and session is not None:
                    is_for_chat = not is_mention and instead_of is None
                    _touch(session, chosen if is_for_chat else None)
                    filing.bring_back(session, user)
        except IntegrityError:  # sent twice, and the other request was faster
            if session is not None:
                raise
            message = _find_duplicate(user, text, client_id)
            if message is None:
                raise
        if page is not None:
            page.on_saved(message)
        return message


def _clean_question(text: str, files: Sequence[int], instead_of: int | None) -> str:
    """Return the text for storage; with files, it can be empty."""
    is_blank = not text.strip()
    if is_blank and (files or (instead_of is not None and attachments.sent_with(instead_of))):
        return ""
    return clean_text(text)


def _claim_files(
    user: User, session: ChatSession | None, files: Sequence[int], instead_of: int | None
) -> list[Attachment]:
    """Return the files of a new message: uploaded ones, or those of the message it replaces."""
    if files:
        return attachments.claim(user, files, session)
    if instead_of is None or not Message.objects.filter(pk=instead_of, has_files=True).exists():
        return []
    return attachments.copies_of(instead_of)


def _touch(session: ChatSession, chosen: RunOptions | None) -> None:
    """Record that the chat was used, and with which options."""
    changes: dict[str, Any] = {"updated_at": timezone.now()}
    if chosen is not None and chosen.dump() != session.options:
        changes["options"] = session.options = chosen.dump()
    update(ChatSession, changes, id=session.pk)


def _path_before(
    session: ChatSession | None, user: User, instead_of: int | None
) -> Sequence[int]:
    """Return the path that a message continues: what its sender sees, or that of a sibling."""
    if session is None:
        return ()
    tree = branches.read(session.pk)
    if instead_of is None:
        parent = branches.visible_leaf(tree, session.pk, user.pk)
    elif instead_of in tree:
        parent = tree.parent(instead_of)
    else:
        raise MessageRejected(_("This message no longer exists."))
    branches.keep_readers(session, tree, parent)
    return tree.path(parent)


def _lock(session: ChatSession, user: User) -> None:
    """Lock the chat for this transaction; raise MessageRejected without write access."""
    if not session_state.lock(session):
        raise MessageRejected(_("This chat no longer exists."))
    if not rights.may_write(session, user):
        raise MessageRejected(str(rights.READ_ONLY_MESSAGE))


def _find_duplicate(
    user: User, text: str, client_id: str, session: ChatSession | None = None
) -> Message | None:
    """Return the message already sent with this id: a double click, or a lost reply."""
    known = None
    is_id = 0 < len(client_id) <= 64 and client_id == sanitize_text(client_id)
    if is_id:
        known = next(iter(_by_client_id(user.pk, client_id)), None)
    # In another chat it isn't a duplicate, and treating it as one would lose the text.
    if not is_id or (known and session and known.session_id != session.pk):
        raise MessageRejected(_("The page sent an invalid request. Reload it and try again."))
    # Neither is different text; but an agent may save it masked, so that counts as equal.
    if known and known.text != text and known.text != masking.mask_value(text):
        raise ClientIdConflict(
            _("Not sent: a different message was sent with the same ID. Send it again.")
        )
    return known


@compiled_query
def _by_client_id(author: int, client_id: str) -> QuerySet[Message]:
    return Message.objects.filter(author=author, client_id=client_id)


def _check_rate(user: User) -> None:
    """Raise MessageRejected if the user has reached the rate limit."""
    with run_factory.reject_agent_errors():
        budgets.count_message(user)
    if not (most := configured.MESSAGES_PER_MINUTE.value):
        return
    budgets.lock_user(user)
    since = timezone.now() - RATE_WINDOW
    if Message.objects.filter(author=user, created_at__gt=since).count() >= most:
        sentence = ngettext(
            "You've sent %(most)d message in the last minute. Wait a moment, "
            "then send it again.",
            "You've sent %(most)d messages in the last minute. Wait a moment, "
            "then send it again.",
            most,
        )
        raise MessageRejected(sentence % {"most": most})


def _build(
    session: ChatSession | None,
    user: User,
    text: str,
    client_id: str,
    agent: str,
    chosen: RunOptions | None = None,
    instead_of: int | None = None,
    is_temporary: bool = False,
    files: Sequence[Attachment] = (),
    project: int | None = None,
) -> Message:
    """Return the message, unsaved: with its run, or with its place in the queue."""
    options = chosen or RunOptions.load(session.options if session else {})
    live = session_state.live_run(session) if session is not None else None
    if live is not None and instead_of is not None:
        raise MessageRejected(
            _("An answer is being written. Wait until it's finished, or stop it first.")
        )
    # A new branch doesn't wait behind messages of other branches.
    if session is not None and instead_of is None and (live or queue.queued_messages(session)):
        return _build_queued(session, user, text, client_id, agent, options, files)
    path = _path_before(session, user, instead_of)
    question = text or attachments.names_of(files)
    session = session or _create_session(user, question, agent, options, is_temporary, project)
    fault_injection.point("before_message_save")
    answers = run_factory.select_agent(agent, user)
    run = run_factory.prepare(session, user, question, answers, path, options, files)
    kept = masking.mask_for_storage(answers, text)
    about = {
        "text": kept,
        "client_id": client_id,
        "agent_name": "",
        "parent_id": path[-1] if path else None,
    }
    return Message(session=session, author=user, run=run, **about)


def _create_session(
    user: User,
    text: str,
    agent: str,
    options: RunOptions,
    is_temporary: bool,
    project: int | None = None,
) -> ChatSession:
    """Create a chat named after its first message, or after the workflow it starts."""
    request = run_factory.requested_workflow(text, user)
    answers = run_factory.select_agent(agent, user)
    if is_temporary:
        return temporary.create(user, options.dump())
    title = request.version.workflow.name if request else titles.first_title(answers, text)
    about = {"user": user, "title": title, "options": options.dump()}
    return ChatSession.objects.create(**about, project=_find_project(user, project))


def _find_project(user: User, pk: int | None) -> Project | None:
    """Return the project of a new chat; raise MessageRejected if the user isn't a member."""
    if pk is None:
        return None
    project = Project.objects.for_user(user).filter(pk=pk).first()
    if project is None:
        raise MessageRejected(_("This project no longer exists, or you aren't a member."))
    return project


def _build_queued(
    session: ChatSession,
    user: User,
    text: str,
    client_id: str,
    agent: str,
    options: RunOptions,
    files: Sequence[Attachment] = (),
) -> Message:
    fault_injection.point("before_message_save")
    name = agent and run_factory.select_agent(agent, user).name
    if files:
        run_factory.check_files(run_factory.select_agent(agent, user))
    if options != RunOptions():
        run_options.overrides(run_factory.select_agent(agent, user), options, user)
    run_factory.requested_workflow(text, user)
    try:
        place = queue.next_place(session)
    except queue.QueueFull:
        raise MessageRejected(
            _("%(most)d messages are already queued. Remove one or wait for an answer.")
            % {"most": queue.MAX_QUEUED}
        ) from None
    kept = _masked_text(user, text, name)
    about = {"text": kept, "client_id": client_id, "agent_name": name, "place": place}
    about["options"] = options.dump()
    path = branches.visible_path(session, user)
    return Message(session=session, author=user, parent_id=path[-1] if path else None, **about)


def _masked_text(user: User, text: str, agent: str) -> str:
    """Mask the text as the agent that would answer it requires."""
    first = agent_factory.default_candidates_for(user.pk)
    answers = run_factory.find_agent(agent, user) if agent else next(iter(first), None)
    return masking.mask_for_storage(answers, text) if answers else text


def clean_text(text: str) -> str:
    """Return the text for storage; raise MessageRejected if it is empty or too long."""
    text = sanitize_text(text).strip()
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise MessageRejected(_("Enter a message first."))
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise MessageRejected(
            _("This message is too long (%(size)d kB). The limit is %(most)d kB.")
            % {"size": len(text.encode()) // 1000, "most": MAX_MESSAGE_BYTES // 1000}
        )
    return text
