"""The page of a chat, and what its forms do without JavaScript."""

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.db.models.functions import Left, Length
from django.http import HttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from agents import runs
from agents.access.requests import UserRequest
from agents.db import database
from agents.db.installation import configured
from agents.db.sanitize import parse_id
from agents.models import AgentStep, Project, Workflow
from agents.models.sentence_fields import first_chars
from agents.web.presentation.formats.formatting import MAX_SHOWN_CHARS
from agents.web.presentation.markdown import MAX_ANSWER_CHARS
from agents.web.sandbox import allow_frames
from agents.web.workflows import start as workflow_start
from chat import attachments, fragments, messages
from chat.errors import MessageRejected
from chat.fragments import MessageView
from chat.live.page_state import MAX_HTML_BYTES, MAX_MESSAGES
from chat.messages import limit_notes, message_actions, queue_actions, session_status
from chat.messages.pages import choice_pages
from chat.messages.run_factory import project_for
from chat.models import ChatSession, Filing, Message
from chat.sessions import branches, deletion, rights, session_state, temporary, titles
from chat.sessions.listing import list_pages


@require_GET
@allow_frames
def new(request: UserRequest) -> HttpResponse:
    project = _requested_project(request, request.GET.get("project", ""))
    context = _page_context(request, project=project)
    context |= {"is_temporary": "temporary" in request.GET and project is None}
    return render(request, "chat/session.html", context)


@require_GET
@allow_frames
def session(request: UserRequest, pk: int) -> HttpResponse:
    filed = Filing.objects.filter(user=request.user, session=OuterRef("pk"))
    archived = Exists(filed.filter(archived_at__isnull=False))
    chats = ChatSession.objects.for_user(request.user).annotate(archived=archived)
    chat = get_object_or_404(chats, pk=pk)
    if chat.is_temporary:
        temporary.touch(chat)
    # The message that a link leads to, by its own number or its run's.
    if (run := parse_id(request.GET.get("run", ""))) is not None:
        linked = chat.messages.filter(run=run).values_list("pk", flat=True).first()
    else:
        linked = parse_id(request.GET.get("leaf") or request.GET.get("message") or "")
    context = {"session": chat, "linked": linked, "is_archived": vars(chat)["archived"]}
    context |= _conversation_context(request, chat, linked)
    if request.htmx and request.GET.get("before"):
        return render(request, "chat/session.html#earlier", context)
    return render(request, "chat/session.html", _page_context(request, chat) | context)


@require_POST
async def start(request: UserRequest) -> HttpResponse:
    user = await request.auser()
    try:
        message = await _submit(request, None, user)
    except MessageRejected as reason:
        return await database.run(_render_rejected, request, reason, None)
    return redirect("chat:session", message.session_id)


@require_POST
async def start_workflow(request: UserRequest, pk: int) -> HttpResponse:
    """Start a chat with the workflow's command, as if it had been typed."""
    user = await request.auser()
    try:
        command = await database.run(_workflow_command, request, user, pk)
        message = await messages.submit(None, user, command, uuid4().hex)
    except (workflow_start.WorkflowNotStarted, MessageRejected) as reason:
        return await database.run(_render_rejected, request, reason, None)
    return redirect("chat:session", message.session_id)


@require_POST
async def send(request: UserRequest, pk: int) -> HttpResponse:
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.for_user(user), pk=pk)
    if (linked := parse_id(request.POST.get("leaf", ""))) is not None:
        await message_actions.show_branch(chat, user, linked)
    try:
        await _submit(request, chat, user)
    except MessageRejected as reason:
        return await database.run(_render_rejected, request, reason, chat)
    return redirect("chat:session", pk)


@require_POST
def keep(request: UserRequest, pk: int) -> HttpResponse:
    """Turn a temporary chat into an ordinary one."""
    chat = get_object_or_404(ChatSession.objects.owned_by(request.user), pk=pk)
    if chat.is_temporary:
        temporary.keep(chat)
    return redirect("chat:session", pk)


@require_POST
async def stop(request: UserRequest, pk: int) -> HttpResponse:
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.writable_by(user), pk=pk)
    run = await database.run(session_state.live_run, chat)
    # The page may be outdated: another run may be live than the displayed one.
    if run is not None and request.POST.get("run") in {None, "", str(run.pk)}:
        await runs.stop(run)
    return redirect("chat:session", pk)


@require_POST
async def send_now(request: UserRequest, pk: int, message: int) -> HttpResponse:
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.writable_by(user), pk=pk)
    await queue_actions.send_now(chat, user, message)
    return redirect("chat:session", pk)


@require_POST
async def withdraw(request: UserRequest, pk: int, message: int) -> HttpResponse:
    """Render the page with the withdrawn text in the composer."""
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.writable_by(user), pk=pk)
    text = await queue_actions.withdraw(chat, user, message)
    if text is None:
        return redirect("chat:session", pk)
    return await database.run(partial(_render_page, request, chat, draft=text))


@require_POST
def rename(request: UserRequest, pk: int) -> HttpResponse:
    chat = get_object_or_404(ChatSession.objects.owned_by(request.user), pk=pk)
    titles.rename(chat, request.POST.get("title", ""))
    deletion.announce(deletion.watchers(chat))
    if not request.htmx:
        return redirect("chat:session", pk)
    context = list_pages.list_context(request, request.user)
    return render(request, "chat/listing/_sessions.html#sessions", context)


def _workflow_command(request: UserRequest, user: User, pk: int) -> str:
    """Return the command that starts the workflow; raise WorkflowNotStarted."""
    mine = Workflow.objects.for_user(user).filter(enabled=True)
    workflow = get_object_or_404(mine, pk=pk)
    return workflow_start.build_request(
        workflow, workflow_start.form_parameters(request.POST), user
    ).query


async def _submit(request: UserRequest, chat: ChatSession | None, user: User) -> Message:
    is_temporary = chat is None and "temporary" in request.POST
    project = parse_id(request.POST.get("project", "")) if chat is None else None
    return await messages.submit(
        chat,
        user,
        request.POST.get("text", ""),
        request.POST.get("client_id") or uuid4().hex,
        request.POST.get("agent", ""),
        options=request.POST,
        files=attachments.parse_ids(request.POST.get("files")),
        is_temporary=is_temporary and project is None,
        project=project,
    )


def _render_rejected(
    request: UserRequest, reason: Exception, chat: ChatSession | None
) -> HttpResponse:
    """Render the page with the reason and the whole text that was typed."""
    context = {
        "draft": request.POST.get("text", ""),
        "notice": str(reason),
        "level": "problem",
        "percent": getattr(reason, "percent", 0),
    }
    response = _render_page(request, chat, **context)
    response.status_code = 422
    return response


def _render_page(request: UserRequest, chat: ChatSession | None, **values: Any) -> HttpResponse:
    context = _page_context(request, chat)
    if chat is not None:
        context |= _conversation_context(request, chat)
    return render(request, "chat/session.html", context | values)


def _page_context(
    request: UserRequest, chat: ChatSession | None = None, project: Project | None = None
) -> dict[str, Any]:
    if chat is None and project is None:
        project = _requested_project(request, request.POST.get("project", ""))
    picker = choice_pages.picker_context(request, chat, project)
    return (
        list_pages.list_context(request, request.user)
        | picker
        | limit_notes.note_context(request.user, picker["chosen"])
        | {
            "project": project if chat is None else project_for(chat, request.user),
            "session": chat,
            "messages": [],  # of a chat; otherwise Django's pending messages of the console
            "max_message": messages.MAX_MESSAGE_BYTES,
            "max_files": configured.MESSAGE_FILES.value,
            "max_file_megabytes": configured.ATTACHMENT_MB.value,
            "may_write": True,
        }
    )


def _requested_project(request: UserRequest, value: str) -> Project | None:
    """Return the project in which a new chat starts, if the user is a member."""
    if (pk := parse_id(value)) is None:
        return None
    projects = Project.objects.for_user(request.user).select_related("agent")
    return projects.filter(pk=pk).first()


def _conversation_context(
    request: UserRequest, chat: ChatSession, linked: int | None = None
) -> dict[str, Any]:
    """Return the last messages, or those before one; `earlier` says if there are more.

    With `?after=`, only those that a page missed. With `linked`, those of this message's
    branch; the page's connection makes it the one that the user sees, because reading saves
    nothing.
    """
    is_discussed = rights.has_members(chat)
    user = request.user
    may_write = rights.may_write(chat, request.user)
    tree = branches.read(chat.pk)
    path = tree.path(branches.linked_leaf(tree, chat.pk, user.pk, linked))
    forks = branches.forks(tree, path)
    if (first := parse_id(request.GET.get("before"))) is not None:
        path = [pk for pk in path if pk < first]
    if (last := parse_id(request.GET.get("after"))) is not None:
        path = [pk for pk in path if pk > last]
    rows = _load_messages(chat, is_discussed).filter(pk__in=path[-MAX_MESSAGES - 1 :])
    newest = list(rows.order_by("-pk"))
    views: list[MessageView] = []
    bytes_left = MAX_HTML_BYTES
    for message in newest[:MAX_MESSAGES]:
        message.session = chat
        options = {"may_write": may_write, "is_discussed": is_discussed}
        run = message.run
        if run is not None:  # the shortened values fill the deferred fields
            run.answer = vars(message)["answer"]
            vars(run)["answer_size"] = vars(message)["size"]
            for step in run.steps.all():
                step.observation = vars(step)["found"]
        view = MessageView.of(message, user, **options, fork=forks.get(message.pk))
        html = fragments.render_message(view, user)
        bytes_left -= len(html.encode())
        if bytes_left < 0 and views:
            break
        views.append(replace(view, html=html))
    return {
        "standing": session_status.get_status(chat, session_state.live_run(chat)),
        "may_write": may_write,
        "messages": views[::-1],
        "earlier": views[-1].pk if len(newest) > len(views) else None,
        "missed_after": last,  # where earlier messages end
    }


def _load_messages(chat: ChatSession, is_discussed: bool) -> QuerySet[Message]:
    """Load messages with only what is displayed: a run can have megabytes of results."""
    steps = AgentStep.objects.defer("observation").annotate(
        found=first_chars("observation", MAX_SHOWN_CHARS), found_size=Length("observation")
    )
    rows = (
        chat.messages.posted()
        .select_related("author__profile", "run", "run__user", "run__review__corrected_by")
        .defer("run__history", "run__answer")
        .annotate(answer=Left("run__answer", MAX_ANSWER_CHARS + 1), size=Length("run__answer"))
        .prefetch_related(
            Prefetch("run__steps", steps), "run__approvals__decided_by", "run__ratings"
        )
    )
    return rows.prefetch_related("run__comments__author") if is_discussed else rows
