"""Pages for single messages, and what their forms do without JavaScript."""

from uuid import uuid4

from asgiref.sync import async_to_sync
from django.http import Http404, HttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.db import database
from chat.errors import MessageRejected
from chat.models import ChatSession, Message

from .. import message_actions, submission


@require_http_methods(["GET", "POST"])
async def edit(request: UserRequest, pk: int, message: int) -> HttpResponse:
    """Edit a message: send it as a new branch, or only correct its text."""
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.writable_by(user), pk=pk)
    mine = Message.objects.for_user(user).posted().filter(session=chat)
    original = await aget_object_or_404(mine, pk=message)
    if request.method == "GET":
        return await database.run(_render_editor, request, chat, original, original.text, "")
    text = request.POST.get("text", "")
    try:
        if request.POST.get("action") == "save":
            await message_actions.correct(chat, user, message, text)
            return redirect(message_url(pk, message))
        client_id = request.POST.get("client_id") or uuid4().hex
        branch = await message_actions.edit(chat, user, message, text, client_id)
    except MessageRejected as reason:
        return await database.run(_render_editor, request, chat, original, text, str(reason))
    return redirect(message_url(pk, branch.pk))


@require_POST
async def regenerate(request: UserRequest, pk: int, message: int) -> HttpResponse:
    """Have a message answered again, by the same agent and model or others."""
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.writable_by(user), pk=pk)
    original = await aget_object_or_404(chat.messages.posted(), pk=message)
    client_id = request.POST.get("client_id") or uuid4().hex
    agent = request.POST.get("agent", "")
    model = request.POST.get("model", "")
    try:
        branch = await message_actions.regenerate(chat, user, message, client_id, agent, model)
    except MessageRejected as reason:
        return await database.run(
            _render_editor, request, chat, original, original.text, str(reason)
        )
    return redirect(message_url(pk, branch.pk))


@require_POST
async def show_branch(request: UserRequest, pk: int, message: int) -> HttpResponse:
    """Show the user the branch of a message."""
    user = await request.auser()
    chat = await aget_object_or_404(ChatSession.objects.for_user(user), pk=pk)
    if not await message_actions.show_branch(chat, user, message):
        raise Http404
    return redirect(message_url(pk, message))


@require_http_methods(["GET", "POST"])
def delete(request: UserRequest, pk: int, message: int) -> HttpResponse:
    """Ask what to delete, and delete it."""
    chat = get_object_or_404(ChatSession.objects.writable_by(request.user), pk=pk)
    try:
        deletion = message_actions.plan_deletion(chat, request.user, message)
    except MessageRejected:
        raise Http404 from None
    problem = ""
    if request.method == "POST":
        below = request.POST.get("scope") == "below"
        try:
            async_to_sync(message_actions.delete)(chat, request.user, message, below=below)
        except MessageRejected as reason:
            problem = str(reason)
        else:
            return redirect("chat:session", pk)
    context = {
        "session": chat,
        "deletion": deletion,
        "problem": problem,
        "can_undo": not chat.is_temporary,
    }
    template = "chat/messages/message_delete.html" + ("#panel" if request.htmx else "")
    return render(request, template, context, status=422 if problem else 200)


@require_GET
def message_text(request: UserRequest, pk: int, message: int) -> HttpResponse:
    """Return a message's whole text."""
    chat = get_object_or_404(ChatSession.objects.for_user(request.user), pk=pk)
    row = get_object_or_404(chat.messages, pk=message)
    return HttpResponse(row.text, content_type="text/plain; charset=utf-8")


def message_url(chat: int, message: int) -> str:
    """Return the link that opens the branch of a message and scrolls to it."""
    return f"{reverse('chat:session', args=[chat])}?leaf={message}#message-{message}"


def _render_editor(
    request: UserRequest, chat: ChatSession, message: Message, text: str, problem: str
) -> HttpResponse:
    context = {
        "session": chat,
        "message": message,
        "text": text,
        "problem": problem,
        "client_id": uuid4().hex,
        "max_message": submission.MAX_MESSAGE_BYTES,
    }
    status = 422 if problem else 200
    return render(request, "chat/messages/message_edit.html", context, status=status)
