"""“Memory”: what is remembered about a user, and everything they can do with it."""

from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.accounts import profiles
from agents.db.sanitize import sanitize_text
from agents.memory import MemoryRejected, MemoryScope, statements, store
from agents.memory.subjects import subject_of
from agents.models import Memory, MemoryExclusion, Project
from agents.runs import pubsub
from agents.web.presentation.memory_cards import MemoryCard

MAX_QUERY_CHARS = 200
DELETED_KEY = "deleted_memory"  # in the session, until it is restored


@never_cache
@require_http_methods(["GET", "POST"])
def memory_page(request: UserRequest) -> HttpResponse:
    """List the user's memories, and add one."""
    if request.method == "GET":
        return _render(request)
    text = request.POST.get("text", "")
    try:
        store.save(MemoryScope(user=request.user.pk), read_form(request))
    except MemoryRejected as reason:
        return _render(request, 422, problem=str(reason), text=text[:2_000])
    return redirect("people:memory")


def read_form(request: UserRequest) -> store.NewMemory:
    """Return what a form adds; the subject and the kind are guessed if they are empty."""
    text, subject = request.POST.get("text", ""), request.POST.get("subject", "")
    kind = request.POST.get("kind", "")
    return store.NewMemory(
        text=text,
        subject=subject or subject_of(text),
        kind=Memory.Kind(kind) if kind in Memory.Kind.values else statements.kind_of(text),
        source=Memory.Source.PAGE,
    )


def _render(request: UserRequest, status: int = 200, **more: Any) -> HttpResponse:
    user = request.user
    query = sanitize_text(request.GET.get("q", "")).strip()[:MAX_QUERY_CHARS]
    own = Memory.objects.for_user(user).personal()
    rows = store.search(own.current(), query).select_related("run")
    context = {
        "memories": rows.prefetch_related("replaces"),
        "proposals": own.proposed().select_related("run"),
        "query": query,
        "is_on": profiles.of_user(user).has_memory,
        "is_excluded": MemoryExclusion.objects.filter(group__user=user).exists(),
        "deleted": last_deleted(request, project=None),
        "kinds": Memory.Kind.choices,
        "max_chars": Memory.MAX_CHARS,
        **more,
    }
    part = "#found" if request.htmx else ""
    return render(request, f"people/memory.html{part}", context, status=status)


def last_deleted(request: UserRequest, project: Project | None) -> Memory | None:
    """Return what this user has just deleted here, if it can still be restored."""
    rows = Memory.objects.editable_by(request.user).exclude(deleted_at=None)
    return rows.filter(pk=request.session.get(DELETED_KEY) or 0, project=project).first()


@require_POST
def switch(request: UserRequest) -> HttpResponse:
    """Turn the user's memory on or off; what is saved stays."""
    profiles.save_setting(request.user, has_memory=request.POST.get("on") == "1")
    return redirect("people:memory")


@require_POST
def clear(request: UserRequest) -> HttpResponse:
    """Delete all of the user's own memories at once, with their history."""
    Memory.objects.filter(user=request.user.pk, project=None).delete()
    return redirect("people:memory")


@require_GET
def export(request: UserRequest) -> HttpResponse:
    """Download the user's memories with their history."""
    own = Memory.objects.for_user(request.user).personal().order_by("pk")
    response = JsonResponse(
        {"memories": [_exported(row) for row in own]},
        json_dumps_params={"ensure_ascii": False, "indent": 2},
    )
    day = timezone.localdate().isoformat()
    response["Content-Disposition"] = f'attachment; filename="ashiato-memory-{day}.json"'
    return response


def _exported(memory: Memory) -> dict[str, Any]:
    return {
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


@never_cache
@require_http_methods(["GET", "POST"])
def edit(request: UserRequest, pk: int) -> HttpResponse:
    """Change a memory, and show what it has replaced."""
    memory = _editable(request, pk)
    if request.method == "GET":
        return _render_form(request, memory)
    kind = request.POST.get("kind", "")
    try:
        store.edit(
            memory,
            request.POST.get("text", ""),
            request.POST.get("subject", ""),
            kind if kind in Memory.Kind.values else memory.kind,
        )
    except MemoryRejected as reason:
        typed = {name: request.POST.get(name, "")[:2_000] for name in ("text", "subject")}
        return _render_form(request, memory, 422, problem=str(reason), **typed)
    return redirect(_redirect_target(memory))


def _render_form(
    request: UserRequest, memory: Memory, status: int = 200, **more: Any
) -> HttpResponse:
    context = {
        "memory": memory,
        "text": memory.text,
        "subject": memory.subject,
        "history": store.history(memory),
        "kinds": Memory.Kind.choices,
        "max_chars": Memory.MAX_CHARS,
        "back": _redirect_target(memory),
        **more,
    }
    return render(request, "people/memory_edit.html", context, status=status)


@require_POST
def accept(request: UserRequest, pk: int) -> HttpResponse:
    memory = _editable(request, pk)
    if memory.status == Memory.Status.PROPOSED:
        store.accept(memory)
    return _respond(request, memory)


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    """Delete a memory or dismiss a suggestion; it can be undone for some minutes."""
    memory = _editable(request, pk)
    store.delete(memory)
    request.session[DELETED_KEY] = memory.pk
    return _respond(request, memory)


@require_POST
def undo(request: UserRequest, pk: int) -> HttpResponse:
    """Take back what a chat has just saved, and restore what it replaced."""
    memory = _editable(request, pk)
    store.undo(memory)
    request.session[DELETED_KEY] = memory.pk
    return _respond(request, memory)


@require_POST
def restore(request: UserRequest, pk: int) -> HttpResponse:
    rows = Memory.objects.editable_by(request.user).select_related("project")
    memory = get_object_or_404(rows, pk=pk)
    store.restore(memory)
    request.session.pop(DELETED_KEY, None)
    return _respond(request, memory)


def _editable(request: UserRequest, pk: int) -> Memory:
    rows = Memory.objects.editable_by(request.user).present().select_related("project")
    return get_object_or_404(rows, pk=pk)


def _respond(request: UserRequest, memory: Memory) -> HttpResponse:
    """Return the card in a chat as it is now, or the page it was on; update other pages."""
    memory.refresh_from_db()
    if (run := memory.run) is not None:
        async_to_sync(pubsub.publish)(run.topic, "run.remembered", run=run.pk)
    if request.htmx:
        card = {"card": MemoryCard(memory)}
        return render(request, "people/_memory_card.html", card)
    return redirect(_redirect_target(memory))


def _redirect_target(memory: Memory) -> Any:
    if memory.project is not None:
        return memory.project
    return "people:memory"
