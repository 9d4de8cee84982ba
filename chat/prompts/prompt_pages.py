"""Pages of the prompt library, and what the composer needs of it."""

from typing import Any

from django import forms
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import recently_deleted
from agents.access.requests import UserRequest
from agents.db.sanitize import sanitize_line, sanitize_text
from agents.models.catalog.rights import group_label
from agents.web.recently_deleted import offer_undo
from chat.models import SHARE_PERMISSION, Prompt, sharable_groups

from . import prompt_text

MAX_QUERY_CHARS = 200


class GroupField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, group: Group) -> str:
        return str(group_label(group))


class PromptForm(forms.Form):
    """A prompt to save, for a user who may share with some groups or everyone."""

    title = forms.CharField(max_length=prompt_text.MAX_TITLE_CHARS, required=False)
    name = forms.CharField(max_length=prompt_text.MAX_NAME_CHARS + 1, required=False)
    text = forms.CharField(required=False, strip=False)
    sharing = forms.ChoiceField(choices=Prompt.Sharing.choices, required=False)
    groups = GroupField(queryset=Group.objects.none(), required=False)

    def __init__(self, *args: Any, user: User, prompt: Prompt | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.user = user
        self.prompt = prompt
        self.owner = prompt.user if prompt else user
        choices = sharable_groups(user)
        if prompt is not None:  # groups that were selected by someone else stay
            choices = (choices | Group.objects.filter(pk__in=prompt.groups.all())).distinct()
        field = self.fields["groups"]
        assert isinstance(field, GroupField)
        field.queryset = choices
        self.has_groups = choices.exists()
        self.may_share_with_all = user.has_perm(SHARE_PERMISSION) or (
            prompt is not None and prompt.sharing == Prompt.Sharing.EVERYONE
        )

    @property
    def may_share(self) -> bool:
        return self.has_groups or self.may_share_with_all

    def clean(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)  # an error would remove what the others need
        data["title"] = sanitize_line(data.get("title", ""))
        data["text"] = sanitize_text(data.get("text", "").replace("\r\n", "\n"))
        typed = data.get("name", "").strip()
        data["name"] = (
            prompt_text.normalize_name(typed)
            if typed
            else prompt_text.suggest_name(data["title"], self.owner)
        )
        data["sharing"] = data.get("sharing") or Prompt.Sharing.PRIVATE
        problems = prompt_text.problems(data["name"], data["title"], data["text"])
        for field, problem in problems.items():
            if field not in self.errors:
                self.add_error(field, problem)
        if data["sharing"] == Prompt.Sharing.EVERYONE and not self.may_share_with_all:
            self.add_error("sharing", _("Only administrators can share with everyone."))
        if data["sharing"] == Prompt.Sharing.GROUPS and not data.get("groups"):
            self.add_error("groups", _("Select at least one group."))
        same = Prompt.objects.present().filter(user=self.owner, name=data["name"])
        if self.prompt is not None:
            same = same.exclude(pk=self.prompt.pk)
        if same.exists():
            self.add_error("name", _("You already have a prompt with this name."))
        return data

    def save(self) -> Prompt:
        """Save the prompt; raise IntegrityError if its name was just taken."""
        data = self.cleaned_data
        with transaction.atomic():
            prompt = self.prompt or Prompt(user=self.user)
            prompt.title = data["title"]
            prompt.name = data["name"]
            prompt.text = data["text"]
            prompt.sharing = data["sharing"]
            prompt.save()
            is_for_groups = prompt.sharing == Prompt.Sharing.GROUPS
            prompt.groups.set(data["groups"] if is_for_groups else [])
        return prompt


@require_GET
def library(request: UserRequest) -> HttpResponse:
    query = sanitize_text(request.GET.get("q", "")).strip()[:MAX_QUERY_CHARS]
    prompts = Prompt.objects.for_user(request.user)
    for term in query.lstrip("/／").split()[:8]:
        prompts = prompts.filter(
            Q(name__icontains=term) | Q(title__icontains=term) | Q(text__icontains=term)
        )
    writable = set(Prompt.objects.writable_by(request.user).values_list("pk", flat=True))
    rows: list[dict[str, Any]] = [
        {
            "prompt": prompt,
            "may_edit": prompt.pk in writable,
            "groups": ", ".join(str(group_label(group)) for group in prompt.groups.all()),
        }
        for prompt in prompts.select_related("user").prefetch_related("groups")
    ]
    context = {
        "mine": [row for row in rows if row["prompt"].user_id == request.user.pk],
        "shared": [row for row in rows if row["prompt"].user_id != request.user.pk],
        "query": query,
    }
    partial = "#found" if request.htmx else ""
    return render(request, f"chat/prompts/prompts.html{partial}", context)


@require_http_methods(["GET", "POST"])
def create(request: UserRequest) -> HttpResponse:
    user = request.user
    if prompt_text.is_at_limit(user):
        problem = _("You've reached the limit of %(most)d prompts. Delete one first.")
        problem %= {"most": prompt_text.MAX_PROMPTS}
        return _render_form(request, PromptForm(user=user), problem=problem)
    if request.method == "GET":
        text = request.GET.get("text", "")[: prompt_text.MAX_TEXT_CHARS]
        return _render_form(request, PromptForm(user=user, initial={"text": text}))
    return _save(request, PromptForm(request.POST, user=user))


@require_POST
def create_from_text(request: UserRequest) -> HttpResponse:
    """Display the form with a text from elsewhere, e.g. a sent message."""
    text = request.POST.get("text", "").replace("\r\n", "\n")[: prompt_text.MAX_TEXT_CHARS]
    title = " ".join(text.split())[:60]
    initial = {"text": text, "title": title}
    return _render_form(request, PromptForm(user=request.user, initial=initial))


@require_http_methods(["GET", "POST"])
def edit(request: UserRequest, pk: int) -> HttpResponse:
    user = request.user
    prompt = get_object_or_404(Prompt.objects.writable_by(user), pk=pk)
    if request.method == "POST":
        return _save(request, PromptForm(request.POST, user=user, prompt=prompt))
    initial = {
        "title": prompt.title,
        "name": prompt.name,
        "text": prompt.text,
        "sharing": prompt.sharing,
        "groups": list(prompt.groups.values_list("pk", flat=True)),
    }
    return _render_form(request, PromptForm(user=user, prompt=prompt, initial=initial))


def _save(request: UserRequest, form: PromptForm) -> HttpResponse:
    if not form.is_valid():
        return _render_form(request, form, status=422)
    try:
        form.save()
    except IntegrityError:  # another tab was faster
        form.add_error("name", _("You already have a prompt with this name."))
        return _render_form(request, form, status=422)
    return redirect("chat:prompts")


def _render_form(
    request: UserRequest, form: PromptForm, *, problem: str = "", status: int = 200
) -> HttpResponse:
    choices = [
        (value, label)
        for value, label in Prompt.Sharing.choices
        if (value != Prompt.Sharing.EVERYONE or form.may_share_with_all)
        and (value != Prompt.Sharing.GROUPS or form.has_groups)
    ]
    context = {
        "form": form,
        "prompt": form.prompt,
        "choices": choices,
        "problem": problem,
    }
    return render(request, "chat/prompts/prompt.html", context, status=status)


@require_POST
def duplicate(request: UserRequest, pk: int) -> HttpResponse:
    """Copy a prompt into the user's own, private."""
    user = request.user
    prompt = get_object_or_404(Prompt.objects.for_user(user), pk=pk)
    if prompt_text.is_at_limit(user):
        return redirect("chat:new_prompt")  # which says why not
    title = (_("Copy of %(title)s") % {"title": prompt.title})[: prompt_text.MAX_TITLE_CHARS]
    name = prompt_text.suggest_name(prompt.name, user)
    copy = Prompt.objects.create(user=user, name=name, title=title, text=prompt.text)
    return redirect("chat:edit_prompt", copy.pk)


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    prompt = get_object_or_404(Prompt.objects.writable_by(request.user), pk=pk)
    recently_deleted.mark(Prompt.objects.filter(pk=pk), request.user)
    sentence = _("“%(title)s” was deleted.") % {"title": prompt.title}
    offer_undo(request, sentence, f"prompt:{pk}")
    return redirect("chat:prompts")


@require_GET
def completions(request: UserRequest) -> JsonResponse:
    """Return the user's prompts for `/` in the composer: their own first."""
    prompts = Prompt.objects.for_user(request.user).values("pk", "name", "title", "user_id")
    rows = sorted(prompts, key=lambda row: (row["user_id"] != request.user.pk, row["name"]))
    return JsonResponse(
        {"prompts": [{key: row[key] for key in ("pk", "name", "title")} for row in rows]}
    )


@require_GET
def parts(request: UserRequest, pk: int) -> JsonResponse:
    """Return a prompt in pieces, with what its variables ask for."""
    prompt = get_object_or_404(Prompt.objects.for_user(request.user), pk=pk)
    parsed = prompt_text.parse(prompt.text, prompt_text.system_values(request.user))
    variables = [
        {"name": variable.name, "default": variable.default, "options": variable.options}
        for variable in parsed.variables
    ]
    return JsonResponse(
        {"title": prompt.title, "pieces": parsed.pieces, "variables": variables}
    )
