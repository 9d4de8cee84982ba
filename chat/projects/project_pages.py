"""Pages of projects: list, home, settings, members, memory."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.accounts.views.memory import read_form
from agents.db.installation import configured
from agents.db.sanitize import sanitize_line, sanitize_text
from agents.memory import NoteRejected, memories
from agents.models import Agent, Memory, Project, ProjectMember
from agents.web import people_suggestions
from chat.models import ChatSession

from . import membership, moving

MAX_LISTED = 200
MAX_DOCUMENTS = 8


class ProjectForm(forms.ModelForm):
    """A project's name, instructions and default agent."""

    class Meta:
        model = Project
        fields = ("name", "description", "instructions", "agent", "uses_memory")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.usable_by(user).filter(enabled=True)
        self.fields["agent"].queryset = agents  # type: ignore[attr-defined]
        self.fields["agent"].empty_label = _("Default agent")  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        name = sanitize_line(self.cleaned_data["name"])
        if not name:
            raise forms.ValidationError(_("Enter a name."))
        return name

    def clean_description(self) -> str:
        return sanitize_line(self.cleaned_data["description"])

    def clean_instructions(self) -> str:
        text = sanitize_text(self.cleaned_data["instructions"])
        return text.replace("\r\n", "\n").strip()


@require_GET
def project_list(request: UserRequest) -> HttpResponse:
    own = Q(chats__user=request.user, chats__deleted_at=None)
    projects = Project.objects.for_user(request.user).select_related("owner__profile")
    rows = projects.annotate(
        chat_count=Count("chats", filter=own, distinct=True),
        member_count=Count("members", distinct=True),
    )
    return render(request, "chat/projects/projects.html", {"projects": rows[:MAX_LISTED]})


@require_http_methods(["GET", "POST"])
def create(request: UserRequest) -> HttpResponse:
    form = ProjectForm(request.POST or None, user=request.user)
    if request.method == "GET" or not form.is_valid():
        return _render_form(request, form)
    try:
        project = membership.create(request.user, **form.cleaned_data)
    except membership.ProjectRejected as reason:
        form.add_error(None, str(reason))
        return _render_form(request, form)
    return redirect(project)


@never_cache
@require_GET
def home(request: UserRequest, pk: int) -> HttpResponse:
    return _render_home(request, _get_visible_project(request, pk))


def _render_home(
    request: UserRequest, project: Project, status: int = 200, **values: Any
) -> HttpResponse:
    user = request.user
    collection = membership.collection_of(project)
    documents = collection.documents.order_by("-added_at")
    project_memories = Memory.objects.for_user(user).filter(project=project)
    chats = ChatSession.objects.for_user(user).saved().filter(project=project)
    may_edit = Project.objects.editable_by(user).filter(pk=project.pk).exists()
    context = {
        "project": project,
        "is_owner": project.owner_id == user.pk,
        "may_edit": may_edit,
        "chats": chats.select_related("user__profile")[:MAX_LISTED],
        "collection": collection,
        "documents": documents[:MAX_DOCUMENTS],
        "document_count": documents.count(),
        "members": membership.guests(project).select_related("user__profile"),
        "memories": project_memories.current().select_related("user__profile", "run"),
        "proposals": project_memories.proposed().select_related("run") if may_edit else (),
        "panel": {"rights": membership.ACCESS_LEVELS},
        "may_suggest": configured.SUGGEST_USERS.value,
        "max_chars": Memory.MAX_CHARS,
        **values,
    }
    return render(request, "chat/projects/project.html", context, status=status)


@require_http_methods(["GET", "POST"])
def edit(request: UserRequest, pk: int) -> HttpResponse:
    editable = Project.objects.editable_by(request.user)
    project = get_object_or_404(editable, pk=pk)
    form = ProjectForm(request.POST or None, instance=project, user=request.user)
    if request.method == "GET" or not form.is_valid():
        return _render_form(request, form, project)
    membership.rename_collection(form.save())
    return redirect(project)


def _render_form(
    request: UserRequest, form: ProjectForm, project: Project | None = None
) -> HttpResponse:
    context = {
        "form": form,
        "project": project,
        "is_owner": project is not None and project.owner_id == request.user.pk,
        "max_instructions": Project.MAX_INSTRUCTIONS,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "chat/projects/project_form.html", context, status=status)


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    """Delete a project; its chats stay."""
    project = _get_owned_project(request, pk)
    membership.delete(project, request.user)
    sentence = _("The project “%(name)s” was deleted. Its chats are in your list.")
    messages.success(request, sentence % {"name": project.name})
    return redirect("chat:projects")


@require_POST
def add_member(request: UserRequest, pk: int) -> HttpResponse:
    project = _get_owned_project(request, pk)
    name = request.POST.get("name", "")
    try:
        membership.add(project, name, request.POST.get("right", ""), request.user)
    except membership.ProjectRejected as reason:
        # htmx displays no page with an error's status.
        status = 200 if request.htmx else 422
        return _render_home(
            request, project, status, member_problem=str(reason), name=name[:150]
        )
    return redirect(project)


@require_POST
def remove_member(request: UserRequest, pk: int, user: int) -> HttpResponse:
    project = _get_owned_project(request, pk)
    try:
        membership.remove(project, user, request.user)
    except ProjectMember.DoesNotExist:
        raise Http404 from None
    return redirect(project)


@require_POST
def leave(request: UserRequest, pk: int) -> HttpResponse:
    """Leave a project; the owner can only delete it."""
    project = _get_visible_project(request, pk)
    try:
        membership.remove(project, request.user.pk, request.user)
    except ProjectMember.DoesNotExist:
        raise Http404 from None
    return redirect("chat:projects")


@require_GET
def suggest_members(request: UserRequest, pk: int) -> HttpResponse:
    project = _get_owned_project(request, pk)
    members = list(project.members.values_list("user", flat=True))
    return people_suggestions.respond(request, members)


@require_POST
def add_memory(request: UserRequest, pk: int) -> HttpResponse:
    """Add to the project's memory."""
    project = get_object_or_404(Project.objects.editable_by(request.user), pk=pk)
    try:
        memories.save(read_form(request, project))
    except NoteRejected as reason:
        text = request.POST.get("text", "")[:2_000]
        return _render_home(request, project, 422, problem=str(reason), text=text)
    return redirect(f"{project.get_absolute_url()}#memory")


@require_http_methods(["GET", "POST"])
def move_chat(request: UserRequest, pk: int) -> HttpResponse:
    """Choose the project of a chat, with what that changes."""
    chat = get_object_or_404(ChatSession.objects.owned_by(request.user).saved(), pk=pk)
    offered = moving.choices(chat, request.user)
    if request.method == "GET":
        context = {"session": chat, "choices": offered}
        return render(request, "chat/projects/move.html", context)
    for choice in offered:
        pk_text = str(choice.project.pk) if choice.project else ""
        if pk_text == request.POST.get("project", ""):
            moving.move(chat, request.user, choice.project)
            return redirect("chat:session", chat.pk)
    raise Http404


def _get_visible_project(request: UserRequest, pk: int) -> Project:
    rows = Project.objects.for_user(request.user).select_related("owner__profile", "agent")
    return get_object_or_404(rows, pk=pk)


def _get_owned_project(request: UserRequest, pk: int) -> Project:
    owned = Project.objects.owned_by(request.user).select_related("owner__profile", "agent")
    return get_object_or_404(owned, pk=pk)
