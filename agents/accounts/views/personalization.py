"""“Personalization”: a user's instructions, answer style, memories and lessons."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.accounts.models import Profile
from agents.accounts.users import profiles
from agents.db.sanitize import sanitize_text
from agents.memory import style
from agents.models import (
    Agent,
    Experience,
    Memory,
    MemoryExclusion,
    Personalization,
    StyleSignal,
)
from agents.models.types import LazyText

MAX_QUERY_CHARS = 200
PAGE_SIZE = 30
MAX_SIGNALS = 3
# What a group without memory can't turn on.
MEMORY_SWITCHES = ("has_memory", "learns")


class PersonalizationForm(forms.ModelForm):
    """Custom instructions, and what agents may remember and learn."""

    learns = forms.BooleanField(required=False)
    learns_style = forms.BooleanField(required=False)

    class Meta:
        model = Profile
        fields = ("has_instructions", "about_me", "answer_style", "has_memory")

    def clean_about_me(self) -> str:
        return _clean_text(self.cleaned_data["about_me"])

    def clean_answer_style(self) -> str:
        return _clean_text(self.cleaned_data["answer_style"])


def _clean_text(text: str) -> str:
    return sanitize_text(text).replace("\r\n", "\n").strip()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A row of the list: a memory, or a lesson from feedback."""

    memory: Memory | None = None
    lesson: Experience | None = None


@never_cache
@require_http_methods(["GET", "POST"])
def personalization_page(request: UserRequest) -> HttpResponse:
    """Show everything that makes answers a user's own, and save instructions and style."""
    if request.method == "GET":
        return render_page(request)
    form = _form(request)
    if not form.is_valid():
        return render_page(request, 422, form=form)
    values: dict[str, Any] = {"chosen": style.clean_choice(request.POST.dict())}
    for name in ("learns", "learns_style"):
        if name in form.cleaned_data:
            values[name] = form.cleaned_data[name]
    with transaction.atomic():
        request.user.profile = form.save()
        Personalization.objects.update_or_create(values, user=request.user)
    messages.success(request, _("Saved."))
    return redirect("people:personalization")


def render_page(request: UserRequest, status: int = 200, **extra_context: Any) -> HttpResponse:
    user = request.user
    query = sanitize_text(request.GET.get("q", "")).strip()[:MAX_QUERY_CHARS]
    rows = Paginator(_remembered(request, query), PAGE_SIZE).get_page(request.GET.get("page"))
    if request.htmx:
        found = {"rows": rows, "query": query, "suggested": _suggested(request)}
        return render(request, "people/personalization.html#found", found)
    proposals = Memory.objects.for_user(user).personal().proposed()
    context = {
        "rows": rows,
        "query": query,
        "suggested": _suggested(request),
        "form": _form(request, is_new=True),
        "traits": list(_traits(request)),
        "proposals": proposals.select_related("run"),
        "is_excluded": _is_excluded(request),
        "has_learners": Agent.objects.filter(learns=True, enabled=True).exists(),
        "max_instructions": Profile.MAX_INSTRUCTIONS,
        "max_chars": Memory.MAX_CHARS,
        **extra_context,
    }
    return render(request, "people/personalization.html", context, status=status)


@require_POST
def forget_style(request: UserRequest) -> HttpResponse:
    """Delete the evidence of a trait."""
    if (trait := request.POST.get("trait", "")) in StyleSignal.Trait.values:
        style.forget(request.user.pk, trait)
    return redirect("people:personalization")


@require_POST
@transaction.atomic
def clear(request: UserRequest) -> HttpResponse:
    """Delete what agents remember of the user and learned from them, also what others use."""
    Memory.objects.filter(user=request.user.pk, project=None).delete()
    Experience.objects.filter(user=request.user).delete()
    StyleSignal.objects.filter(user=request.user).delete()
    Personalization.objects.filter(user=request.user).update(learned={})
    return redirect("people:personalization")


def _form(request: UserRequest, *, is_new: bool = False) -> PersonalizationForm:
    """Return the form, without the switches that the user's group has decided."""
    saved = _personalization(request)
    form = PersonalizationForm(
        None if is_new else request.POST,
        instance=copy(profiles.of_user(request.user)),
        initial={"learns": saved.learns, "learns_style": saved.learns_style},
    )
    if _is_excluded(request):
        for name in MEMORY_SWITCHES:
            del form.fields[name]
    return form


def _is_excluded(request: UserRequest) -> bool:
    """Whether an administrator has turned memory off for one of the user's groups."""
    return MemoryExclusion.objects.filter(group__user=request.user).exists()


def _personalization(request: UserRequest) -> Personalization:
    user = request.user
    return Personalization.objects.filter(user=user).first() or Personalization(user=user)


def _remembered(request: UserRequest, query: str) -> list[Remembered]:
    """Return memories and lessons with these words, the newest first."""
    memories = Memory.objects.for_user(request.user).personal().current().search(query)
    lessons = Experience.objects.for_user(request.user).search(query)
    dated = [
        (memory.valid_from, Remembered(memory=memory))
        for memory in memories.select_related("run").prefetch_related("replaces")
    ] + [
        (lesson.created_at, Remembered(lesson=lesson))
        for lesson in lessons.select_related("agent", "project")
    ]
    return [row for _at, row in sorted(dated, key=lambda pair: pair[0], reverse=True)]


def _suggested(request: UserRequest) -> set[str]:
    """Return the digests of the user's lessons that were suggested to others."""
    lessons = Experience.objects.present().filter(user=request.user)
    wider = lessons.exclude(scope=Experience.Scope.PERSON)
    return set(wider.values_list("digest", flat=True))


def _traits(request: UserRequest) -> Iterator[TraitRow]:
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
