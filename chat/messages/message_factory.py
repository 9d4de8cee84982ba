"""Builds messages that aren't saved yet: with a run, or with a place in the queue."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.access import masking
from agents.engine import fault_injection
from agents.models import Project
from chat import attachments
from chat.errors import MessageRejected
from chat.models import Attachment, ChatSession, Message
from chat.sessions import branches, session_state, temporary, titles

from . import queue, run_factory, run_options
from .run_options import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message as it was sent; `chosen` are its own options, if not the chat's."""

    session: ChatSession | None
    user: User
    text: str
    client_id: str
    agent: str = ""
    chosen: RunOptions | None = None
    files: Sequence[int] = ()
    instead_of: int | None = None
    is_mention: bool = False
    is_temporary: bool = False
    project: int | None = None


def build_message(draft: Draft, files: Sequence[Attachment]) -> Message:
    """Return the message, unsaved: with its run, or with its place in the queue."""
    session = draft.session
    options = draft.chosen or RunOptions.load(session.options if session else {})
    live = session_state.live_run(session) if session is not None else None
    if live is not None and draft.instead_of is not None:
        raise MessageRejected(
            _("An answer is being written. Wait until it's finished, or stop it first.")
        )
    # A new branch doesn't wait behind messages of other branches.
    is_branch = draft.instead_of is not None
    if session is not None and not is_branch and (live or queue.queued_messages(session)):
        message = _build_queued(draft, session, options, files)
    else:
        message = _build_answered(draft, options, files)
    message.is_mention = draft.is_mention
    message.has_files = bool(files)
    return message


def _build_answered(draft: Draft, options: RunOptions, files: Sequence[Attachment]) -> Message:
    """Return the message with the run that answers it, in a new chat if there is none."""
    user = draft.user
    session = draft.session
    replaced = draft.instead_of
    path: Sequence[int] = ()
    if session is not None:  # the path is what its sender sees, or that of a sibling
        tree = branches.read(session.pk)
        if replaced is None:
            parent = branches.visible_leaf(tree, session.pk, user.pk)
        elif replaced in tree:
            parent = tree.parent(replaced)
        else:
            raise MessageRejected(_("This message no longer exists."))
        branches.keep_readers(session, tree, parent)
        path = tree.path(parent)
    question = draft.text or attachments.names_of(files)
    if session is None:
        session = _create_session(draft, question, options)
    fault_injection.point("before_message_save")
    agent = run_factory.select_agent(draft.agent, user)
    is_repeated = (
        replaced is not None and Message.objects.filter(pk=replaced, text=draft.text).exists()
    )
    run = run_factory.prepare(
        session, user, question, agent, path, options, files, is_repeated=is_repeated
    )
    return Message(
        session=session,
        author=user,
        run=run,
        text=masking.mask_for_storage(agent, draft.text),
        client_id=draft.client_id,
        agent_name="",
        parent_id=path[-1] if path else None,
    )


def _build_queued(
    draft: Draft, session: ChatSession, options: RunOptions, files: Sequence[Attachment]
) -> Message:
    fault_injection.point("before_message_save")
    user = draft.user
    agent = run_factory.select_agent(draft.agent, user)
    if files:
        run_factory.check_files(agent)
    chosen = run_options.overrides(agent, options, user) if options != RunOptions() else {}
    if run_factory.requested_workflow(draft.text, user) is None:
        run_factory.check_length(agent, chosen.get("model", ""), draft.text)
    path = branches.visible_path(session, user)
    return Message(
        session=session,
        author=user,
        text=masking.mask_for_storage(agent, draft.text),
        client_id=draft.client_id,
        agent_name=draft.agent and agent.name,
        place=queue.next_place(session),
        options=options.dump() | queue.program_options(),
        parent_id=path[-1] if path else None,
    )


def _create_session(draft: Draft, text: str, options: RunOptions) -> ChatSession:
    """Create a chat named after its first message, or after the workflow it starts."""
    user = draft.user
    request = run_factory.requested_workflow(text, user)
    agent = run_factory.select_agent(draft.agent, user)
    if draft.is_temporary:
        return temporary.create(user, options.dump())
    title = request.version.workflow.name if request else titles.first_title(agent, text)
    title = titles.distinct(user.pk, title)
    project = None
    if draft.project is not None:
        project = Project.objects.for_user(user).filter(pk=draft.project).first()
        if project is None:
            raise MessageRejected(_("This project no longer exists, or you aren't a member."))
    return ChatSession.objects.create(
        user=user, title=title, options=options.dump(), project=project
    )
