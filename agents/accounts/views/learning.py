"""“Learning”: what agents learned from a user, and everything they can do with it."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.accounts.deleted_memories import MAX_TITLE_CHARS
from agents.accounts.users import profiles
from agents.db.sanitize import sanitize_text
from agents.engine.text import shorten
from agents.memory import NoteRejected, experiences, policy, store, style
from agents.models import Agent, Experience, Personalization, StyleSignal
from agents.models.types import LazyText
from agents.web.recently_deleted import offer_undo

MAX_QUERY_CHARS = 200
PAGE_SIZE = 30
MAX_SIGNALS = 3
SWITCHES = ("learns", "learns_style")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraitRow:
    """A trait of answers: what the user chose, what was learned, and why."""

    trait: str
    label: LazyText
    help: LazyText
    choices: list[tuple[str, LazyText]]
    chosen: str
    learned: LazyText
    signals: list[StyleSignal]
    is_contradicted: bool


@never_cache
@require_GET
def learning_page(request: UserRequest) -> HttpResponse:
    """List what was learned from the user: their answer style and their experiences."""
    user = request.user
    query = sanitize_text(request.GET.get("q", "")).strip()[:MAX_QUERY_CHARS]
    rows = Experience.objects.for_user(user).search(query)
    page = Paginator(rows.select_related("agent", "project"), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    suggested = Experience.objects.present().filter(user=user)
    suggested = suggested.exclude(scope=Experience.Scope.PERSON)
    context = {
        "experiences": page,
        "query": query,
        "traits": list(_traits(request)),
        "personalization": _personalization(request),
        "is_excluded": policy.is_excluded(user.pk),
        "has_learners": Agent.objects.filter(learns=True, enabled=True).exists(),
        # The digests of the user's experiences that were suggested to others.
        "suggested": set(suggested.values_list("digest", flat=True)),
    }
    partial = "#found" if request.htmx else ""
    return render(request, f"people/learning.html{partial}", context)


def _personalization(request: UserRequest) -> Personalization:
    user = request.user
    return Personalization.objects.filter(user=user).first() or Personalization(user=user)


def _traits(request: UserRequest) -> Any:
    saved = _personalization(request)
    profile = profiles.of_user(request.user)
    custom = f"{profile.about_me}\n{profile.answer_style}" if profile.has_instructions else ""
    contradicted = style.contradicted(custom)
    signals = style.recent_signals(request.user.pk)
    for trait, values in style.STYLES.items():
        learned = saved.learned.get(trait, "")
        yield TraitRow(
            trait=str(trait),
            label=StyleSignal.Trait(trait).label,
            help=style.TRAIT_HELP[trait],
            choices=[(value, style_choice.label) for value, style_choice in values.items()],
            chosen=saved.chosen.get(trait, ""),
            learned=style.label(trait, learned) if learned else "",
            signals=[signal for signal in signals if signal.trait == trait][:MAX_SIGNALS],
            is_contradicted=trait in contradicted,
        )


@require_POST
def switch(request: UserRequest) -> HttpResponse:
    """Turn learning on or off for this user; what was learned stays."""
    if (name := request.POST.get("name", "")) in SWITCHES:
        is_on = request.POST.get("on") == "1"
        Personalization.objects.update_or_create({name: is_on}, user=request.user)
    return redirect("people:learning")


@require_POST
def save_style(request: UserRequest) -> HttpResponse:
    """Save the user's own choices, which win over what is learned."""
    chosen = style.clean_choice(request.POST.dict())
    Personalization.objects.update_or_create({"chosen": chosen}, user=request.user)
    messages.success(request, _("Saved."))
    return redirect("people:learning")


@require_POST
def forget_style(request: UserRequest) -> HttpResponse:
    """Delete the evidence of a trait."""
    if (trait := request.POST.get("trait", "")) in StyleSignal.Trait.values:
        style.forget(request.user.pk, trait)
    return redirect("people:learning")


@require_POST
def clear(request: UserRequest) -> HttpResponse:
    """Delete everything that was learned from the user, also what others use."""
    with transaction.atomic():
        Experience.objects.filter(user=request.user).delete()
        StyleSignal.objects.filter(user=request.user).delete()
        Personalization.objects.filter(user=request.user).update(learned={})
    return redirect("people:learning")


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
        return redirect("people:learning")
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
    return redirect("people:learning")


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
    return redirect("people:learning")


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    row = _own(request, pk)
    store.delete(row, request.user)
    sentence = _("“%(text)s” was deleted.") % {"text": shorten(row.text, MAX_TITLE_CHARS)}
    offer_undo(request, sentence, f"experience:{row.pk}")
    return redirect("people:learning")


def _own(request: UserRequest, pk: int) -> Experience:
    rows = Experience.objects.editable_by(request.user).present()
    return get_object_or_404(rows.select_related("run", "agent"), pk=pk)
