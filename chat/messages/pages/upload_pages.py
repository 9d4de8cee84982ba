"""Files of the composer and of messages: upload, progress, removal, and their content."""

from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents.access.requests import UserRequest
from agents.catalog.attachments.file_context import most_whole_tokens
from agents.catalog.language_models import model_setups, planner_factory
from agents.db.sanitize import parse_id
from agents.knowledge.files import FileRefused, images, serving
from agents.models import Agent, Document
from chat import attachments
from chat.attachments.presentation import FileView
from chat.errors import MessageRejected
from chat.models import Attachment, ChatSession

from .. import run_factory


@require_http_methods(["GET", "POST"])
def uploads(request: UserRequest) -> HttpResponse:
    """Receive a file, or return how far the user's unsent files are."""
    if request.method == "GET":
        ids = attachments.parse_ids(request.GET.get("ids", ""))
        mine = Attachment.objects.unsent_by(request.user).filter(pk__in=ids)
        rows = mine.select_related("file", "document")
        response = JsonResponse({"files": [FileView(row).to_json() for row in rows]})
        response["Cache-Control"] = "no-store"
        return response
    chat = request.POST.get("chat", "")
    if chat:  # reading a chat is not enough to add files to it
        get_object_or_404(ChatSession.objects.writable_by(request.user), pk=parse_id(chat))
    upload = request.FILES.get("file")
    if upload is None:
        return JsonResponse({"problem": _("Choose a file first.")}, status=422)
    agent = request.POST.get("agent", "")
    model = request.POST.get("model", "")
    try:
        attachment = receive(request.user, upload, agent, model)
    except FileRefused as reason:
        return JsonResponse({"problem": str(reason)}, status=422)
    return JsonResponse(FileView(attachment).to_json(), status=201)


def receive(
    user: User, upload: "UploadedFile[Any]", agent_name: str = "", model: str = ""
) -> Attachment:
    """Save a file that is to be sent to this agent; raise FileRefused."""
    agent = _agent(agent_name, user)
    # If the model doesn't see, the text in an image must be read.
    reads_images = agent is not None and not planner_factory.sees_images(agent, model)
    is_private = agent is not None and agent.personal_data == Agent.PersonalData.HIDDEN
    return attachments.receive(user, upload, reads_images=reads_images, is_private=is_private)


def _agent(name: str, user: User) -> Agent | None:
    """Return the agent that is chosen in the composer."""
    try:
        return run_factory.select_agent(name, user)
    except MessageRejected:
        return None


@require_POST
def remove(request: UserRequest, pk: int) -> HttpResponse:
    """Remove a file that wasn't sent."""
    if not attachments.remove(request.user, pk):
        raise Http404
    return HttpResponse(status=204)


@require_POST
def retry(request: UserRequest, pk: int) -> HttpResponse:
    """Read a file again that couldn't be read."""
    row = get_object_or_404(
        Attachment.objects.unsent_by(request.user).select_related("file", "document"), pk=pk
    )
    attachments.retry(row)
    row.refresh_from_db()
    return JsonResponse(FileView(row).to_json())


@require_POST
def choose_reading(request: UserRequest, pk: int) -> HttpResponse:
    """Send a file's text whole, or have it searched, from the next message on."""
    rows = Attachment.objects.editable_by(request.user).select_related("file", "document")
    view = FileView(get_object_or_404(rows, pk=pk))
    sent_as = request.POST.get("sent_as", "")
    document = view.row.document
    if document is None or not view.can_choose or sent_as not in Document.SentAs.values:
        problem = _("This file hasn't been read yet. Try again in a moment.")
        return JsonResponse({"problem": problem}, status=422)
    if sent_as == Document.SentAs.WHOLE and (problem := _too_long(request, view)):
        return JsonResponse({"problem": problem}, status=422)
    document.sent_as = sent_as
    document.save(update_fields=["sent_as"])
    return JsonResponse(view.to_json())


def _too_long(request: UserRequest, view: FileView) -> str:
    """Return why a file can't be sent whole to the chosen model."""
    agent = _agent(request.POST.get("agent", ""), request.user)
    if agent is None:
        return ""
    model = request.POST.get("model", "")
    max_tokens = most_whole_tokens(planner_factory.context_window(agent, model))
    if view.tokens <= max_tokens:
        return ""
    sentence = _(
        "%(name)s has about %(tokens)s tokens, and %(model)s has room for %(most)s. Keep "
        "it searchable, or choose a model with a larger context."
    )
    return sentence % {
        "name": view.row.name,
        "tokens": f"{view.tokens:,}",
        "model": model or model_setups.model_name(agent),
        "most": f"{max_tokens:,}",
    }


@require_safe
def file(request: UserRequest, pk: int) -> HttpResponseBase:
    """Return a file to users who can see its chat, or to the user who hasn't sent it."""
    rows = Attachment.objects.for_user(request.user).select_related("file")
    row = get_object_or_404(rows, pk=pk)
    if request.GET.get("size") == "thumbnail" and images.has_thumbnail(
        row.file, owner=request.user.pk
    ):
        return serving.serve_thumbnail(request, row.file)
    return serving.serve(request, row.file, name=row.name, mime_type=row.mime_type)
