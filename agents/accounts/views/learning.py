"""Lessons that agents learned from a user, and everything they can do with one."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.accounts.deleted_memories import MAX_TITLE_CHARS
from agents.engine.text import shorten
from agents.memory import NoteRejected, experiences, store
from agents.models import Experience
from agents.web.recently_deleted import offer_undo


@never_cache
@require_http_methods(["GET", "POST"])
def edit(request: UserRequest, pk: int) -> HttpResponse:
    """Change an experience, and list the runs it comes from and that used it."""
    row = _own(request, pk)
    typed = {"question": row.question, "text": row.text}
    if request.method == "POST":
        typed = {name: request.POST.get(name, "")[:2_000] for name in typed}
        try:
            experiences.edit(row, typed["question"], typed["text"])
        except NoteRejected as reason:
            return _render_form(request, row, typed, 422, problem=str(reason))
        row.save()
        return redirect("people:personalization")
    return _render_form(request, row, typed)


def _render_form(
    request: UserRequest,
    experience: Experience,
    typed: dict[str, str],
    status: int = 200,
    **extra_context: Any,
) -> HttpResponse:
    evidence = experience.evidence.select_related("run").order_by("role", "-run_id")[:20]
    limits = {"max_question": experience.MAX_QUESTION_CHARS, "max_text": experience.MAX_CHARS}
    context = {
        "experience": experience,
        "evidence": evidence,
        **typed,
        **limits,
        **extra_context,
    }
    return render(request, "people/experience_edit.html", context, status=status)


@require_POST
def use(request: UserRequest, pk: int) -> HttpResponse:
    """Turn an experience on or off."""
    is_on = request.POST.get("on") == "1"
    experiences.switch(_own(request, pk), is_on=is_on, reason=Experience.OffReason.PERSON)
    return redirect("people:personalization")


@require_POST
def suggest(request: UserRequest, pk: int) -> HttpResponse:
    """Suggest an experience to others; a reviewer decides."""
    row = _own(request, pk)
    is_project = request.POST.get("to") == Experience.Scope.PROJECT
    scope = Experience.Scope.PROJECT if is_project else Experience.Scope.AGENT
    try:
        experiences.propose(row, scope)
    except NoteRejected as reason:
        messages.error(request, str(reason))
    else:
        messages.success(
            request, _("Suggested. Other users get it once a reviewer approves it.")
        )
    return redirect("people:personalization")


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    row = _own(request, pk)
    store.delete(row, request.user)
    sentence = _("“%(text)s” was deleted.") % {"text": shorten(row.text, MAX_TITLE_CHARS)}
    offer_undo(request, sentence, f"experience:{row.pk}")
    return redirect("people:personalization")


def _own(request: UserRequest, pk: int) -> Experience:
    rows = Experience.objects.editable_by(request.user).present()
    return get_object_or_404(rows.select_related("run", "agent"), pk=pk)
