"""What is remembered about a user or a project, and everything that can be done with it."""

from contextlib import suppress
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore
from agents.access.requests import UserRequest
from agents.accounts.deleted_memories import MAX_TITLE_CHARS, announce, page_of
from agents.engine.text import shorten
from agents.memory import NoteRejected, memories, statements, store
from agents.memory.statements import subject_of
from agents.models import Memory, Project
from agents.web.presentation.memory_cards import MemoryCard
from agents.web.recently_deleted import offer_undo

from .personalization import render_page


@never_cache
@require_http_methods(["GET", "POST"])
def add(request: UserRequest) -> HttpResponse:
    """Add a memory; they are listed on the page *Personalization*."""
    if request.method == "POST":
        try:
            memories.save(read_form(request))
        except NoteRejected as reason:
            text = request.POST.get("text", "")[:2_000]
            return render_page(request, 422, problem=str(reason), text=text)
    return redirect("people:personalization")


def read_form(request: UserRequest, project: Project | None = None) -> Memory:
    """Return what a form adds; the subject and the kind are guessed if they are empty."""
    text = request.POST.get("text", "")
    kind = request.POST.get("kind", "")
    return Memory(
        user_id=request.user.pk,
        project=project,
        text=text,
        subject=request.POST.get("subject", "") or subject_of(text),
        kind=Memory.Kind(kind) if kind in Memory.Kind.values else statements.kind_of(text),
        source=Memory.Source.PAGE,
    )


@require_GET
def export(request: UserRequest) -> HttpResponse:
    """Download the user's memories with their history."""
    own = Memory.objects.for_user(request.user).personal().order_by("pk")
    exported = [
        {
            "id": memory.pk,
            "text": memory.text,
            "subject": memory.subject,
            "kind": memory.kind,
            "status": memory.status,
            "source": memory.source,
            "run": memory.run_id,
            "valid_from": memory.valid_from,
            "valid_to": memory.valid_to,
            "replaced_by": memory.superseded_by_id,
        }
        for memory in own
    ]
    response = JsonResponse(
        {"memories": exported}, json_dumps_params={"ensure_ascii": False, "indent": 2}
    )
    day = timezone.localdate().isoformat()
    response["Content-Disposition"] = f'attachment; filename="ashiato-memory-{day}.json"'
    return response


@never_cache
@require_http_methods(["GET", "POST"])
def edit(request: UserRequest, pk: int) -> HttpResponse:
    """Change a memory, and show what it has replaced."""
    memory = _editable(request, pk)
    if request.method == "GET":
        return _render_form(request, memory)
    kind = request.POST.get("kind", "")
    try:
        memories.edit(
            memory,
            request.POST.get("text", ""),
            request.POST.get("subject", ""),
            kind if kind in Memory.Kind.values else memory.kind,
        )
    except NoteRejected as reason:
        typed = {name: request.POST.get(name, "")[:2_000] for name in ("text", "subject")}
        return _render_form(request, memory, 422, problem=str(reason), **typed)
    return redirect(page_of(memory))


def _render_form(
    request: UserRequest, memory: Memory, status: int = 200, **extra_context: Any
) -> HttpResponse:
    context = {
        "memory": memory,
        "text": memory.text,
        "subject": memory.subject,
        "history": memories.history(memory),
        "kinds": Memory.Kind.choices,
        "max_chars": Memory.MAX_CHARS,
        "back": page_of(memory),
        **extra_context,
    }
    return render(request, "people/memory_edit.html", context, status=status)


@require_POST
def accept(request: UserRequest, pk: int) -> HttpResponse:
    memory = _editable(request, pk)
    if memory.status == Memory.Status.PROPOSED:
        memories.accept(memory)
    return _respond(request, memory)


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    """Delete a memory or dismiss a suggestion."""
    memory = _editable(request, pk)
    store.delete(memory, request.user)
    if not request.htmx:
        is_saved = memory.status == Memory.Status.ACTIVE
        sentence = _("“%(text)s” was deleted.") if is_saved else _("“%(text)s” was dismissed.")
        text = shorten(memory.text, MAX_TITLE_CHARS)
        offer_undo(request, sentence % {"text": text}, f"memory:{memory.pk}")
    return _respond(request, memory)


@require_POST
def undo(request: UserRequest, pk: int) -> HttpResponse:
    """Take back what a chat has just saved, and restore what it replaced."""
    memory = _editable(request, pk)
    memories.undo(memory, request.user)
    return _respond(request, memory)


@require_POST
def restore(request: UserRequest, pk: int) -> HttpResponse:
    """Restore a memory from its card in a chat, which says how it is then."""
    rows = Memory.objects.editable_by(request.user).select_related("project")
    memory = get_object_or_404(rows, pk=pk)
    with suppress(CannotRestore, ObjectDoesNotExist):
        recently_deleted.restore(request.user, f"memory:{pk}")
    return _respond(request, memory)


def _editable(request: UserRequest, pk: int) -> Memory:
    rows = Memory.objects.editable_by(request.user).present().select_related("project")
    return get_object_or_404(rows, pk=pk)


def _respond(request: UserRequest, memory: Memory) -> HttpResponse:
    """Return the card in a chat as it is now, or the page it was on; update other pages."""
    memory.refresh_from_db()
    announce(memory)
    if request.htmx:
        card = {"card": MemoryCard(memory)}
        return render(request, "people/_memory_card.html", card)
    return redirect(page_of(memory))
