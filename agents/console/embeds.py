"""Chats in other sites in the console: the list, the form with a preview, and what to copy."""

import re
from typing import Any, cast
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, reverse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.access.visitors import visitor_accounts
from agents.knowledge import scope
from agents.models import Agent, Embed, Quota
from agents.models.catalog.embeds import MAX_EXAMPLES
from agents.models.types import AnyUser
from agents.runs import pubsub
from agents.tools.search import SearchTool
from agents.web.origin import origin_of
from agents.web.presentation.formats.dates import timestamp
from agents.web.sandbox import allow_frames

from . import embed_examples
from .admin_classes.switchable import SwitchableAdmin

DIR = "admin/agents/embed"
ORIGIN = re.compile(
    r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?", re.IGNORECASE | re.ASCII
)
DEFAULT_PORTS = {"http": "80", "https": "443"}
MAX_ORIGINS = 50
MAX_EXAMPLE_CHARS = 120
GROUP_PREFIX = "Visitors: "
Measure = Quota.Measure
Window = Quota.Window
# The limits of the form: rows of the group, for each member or shared, and their defaults.
LIMITS = {
    "messages_per_minute": (False, Window.MINUTE, 6),
    "messages_per_day": (False, Window.DAY, 50),
    "all_messages_per_day": (True, Window.DAY, 1000),
}


class EmbedForm(forms.ModelForm):
    editor: AnyUser | None = None

    messages_per_minute = forms.IntegerField(
        label=gettext_lazy("Messages per visitor and minute"), required=False, min_value=1
    )
    messages_per_day = forms.IntegerField(
        label=gettext_lazy("Messages per visitor and day"), required=False, min_value=1
    )
    all_messages_per_day = forms.IntegerField(
        label=gettext_lazy("Messages of all visitors per day"),
        required=False,
        min_value=1,
        help_text=gettext_lazy("If a limit is empty, only those of the page Limits apply."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        agents = Agent.objects.filter(enabled=True)
        if self.editor is not None and self.editor.pk:
            agents = agents & Agent.objects.open_to(self.editor.pk)
        choices: dict[str, Any] = self.fields
        if "agent" in choices:
            kept = Q(pk__in=agents.values("pk")) | Q(pk=self.instance.agent_id)
            self.initial.setdefault("agent", agents.filter(is_default=True).first())
            choices["agent"].queryset = Agent.objects.filter(kept).order_by("name")
        if "approver" in choices:
            people = User.objects.exclude(pk__in=visitor_accounts().values("pk"))
            kept = Q(is_active=True, is_staff=True) | Q(pk=self.instance.approver_id)
            self.initial.setdefault("approver", self.editor)
            choices["approver"].queryset = people.filter(kept).order_by("username")
        saved = {
            (quota.is_shared, quota.window): quota.limit for quota in _quotas(self.instance)
        }
        for name, (is_shared, window, default) in LIMITS.items():
            value = saved.get((is_shared, window)) if self.instance.pk else default
            self.initial.setdefault(name, value)

    def clean_origins(self) -> str:
        """Return the origins as browsers write them, one per line."""
        origins: dict[str, None] = {}
        for line in self.cleaned_data["origins"].split():
            match = ORIGIN.fullmatch(line.rstrip("/"))
            if match is None:
                sentence = _("“%(line)s” isn’t a site. Write it as https://www.example.com.")
                raise forms.ValidationError(sentence % {"line": line[:80]})
            scheme, host, port = match.groups()
            scheme = scheme.lower()
            suffix = f":{port}" if port and port != DEFAULT_PORTS[scheme] else ""
            origins[f"{scheme}://{host.lower()}{suffix}"] = None
        if len(origins) > MAX_ORIGINS:
            raise forms.ValidationError(_("Up to %(most)d sites.") % {"most": MAX_ORIGINS})
        return "\n".join(origins)

    def clean_examples(self) -> str:
        lines = [line.strip() for line in self.cleaned_data["examples"].splitlines()]
        examples = [line for line in lines if line]
        if len(examples) > MAX_EXAMPLES or any(len(e) > MAX_EXAMPLE_CHARS for e in examples):
            sentence = _("Up to %(most)d questions of %(chars)d characters.")
            values = {"most": MAX_EXAMPLES, "chars": MAX_EXAMPLE_CHARS}
            raise forms.ValidationError(sentence % values)
        return "\n".join(examples)


@admin.register(Embed)
class EmbedAdmin(SwitchableAdmin):
    form = EmbedForm
    list_display = ["name", "agent", "sites", "enabled", "visitors", "last_used"]
    list_filter = ["enabled", "agent"]
    list_select_related = ["agent"]
    search_fields = ["name", "origins"]
    fieldsets = [
        (None, {"fields": ["name", "agent", "origins", "audience", "enabled"]}),
        (
            gettext_lazy("Appearance"),
            {"fields": ["title", "greeting", "examples", ("theme", "language"), "shows_steps"]},
        ),
        (
            gettext_lazy("Limits and approvals"),
            {"fields": [tuple(LIMITS), "retention_days", "approver"], "classes": ["collapse"]},
        ),
    ]
    change_list_template = f"{DIR}/change_list.html"
    change_form_template = f"{DIR}/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        rotate = self.admin_path("<int:pk>/rotate/", self.rotate_view, "agents_embed_rotate")
        return [rotate, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Embed]:
        embeds = super().get_queryset(request)
        return embeds.annotate(
            visitor_count=Count("group__user__embed_visit"),
            used_at=Max("group__user__embed_visit__last_used_at"),
        )

    def get_form(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        form_class = super().get_form(request, *args, **options)
        return type("Form", (form_class,), {"editor": request.user})

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None and db_field.name in {"origins", "examples"}:
            field.widget.attrs["rows"] = 3
        if field is not None and db_field.name == "origins":
            field.widget.attrs["placeholder"] = "https://www.example.com"
        return field

    @admin.display(description=gettext_lazy("allowed sites"))
    def sites(self, embed: Embed) -> str:
        return ", ".join(origin.partition("://")[2] for origin in embed.allowed_origins)

    @admin.display(description=gettext_lazy("visitors"), ordering="visitor_count")
    def visitors(self, embed: Any) -> int:
        count: int = embed.visitor_count
        return count

    @admin.display(description=gettext_lazy("last used"), ordering="used_at")
    def last_used(self, embed: Any) -> Any:
        return timestamp(embed.used_at)

    def changed_message(self, count: int, values: dict[str, bool]) -> str:
        sentence = _("%(count)d enabled.") if values["enabled"] else _("%(count)d disabled.")
        return sentence % {"count": count}

    def set_values(self, request: HttpRequest, row: Any, **values: Any) -> None:
        super().set_values(request, row, **values)
        _recheck_frames(row)

    def save_model(self, request: HttpRequest, obj: Embed, form: Any, change: bool) -> None:
        """Save it with its group: that of the visitors, with their limits."""
        if not change:
            obj.group = Group.objects.create(name=_free_group_name(obj.name))
            obj.approver = obj.approver or signed_in_user(request)
        elif "name" in form.changed_data:
            obj.group.name = _free_group_name(obj.name, obj.group)
            obj.group.save()
        if obj.allows_signed and not obj.secret:
            vars(request)["new_secret"] = obj.new_secret()
        super().save_model(request, obj, form, change)
        for name, (is_shared, window, _default) in LIMITS.items():
            quotas = _quotas(obj).filter(is_shared=is_shared, window=window)
            limit = form.cleaned_data.get(name)
            if limit is None:
                quotas.delete()
            elif not quotas.update(limit=limit):
                row = {"group": obj.group, "is_shared": is_shared, "measure": Measure.MESSAGES}
                Quota.objects.create(**row, window=window, limit=limit)
        if obj.agent.groups.exists():  # otherwise it is for everyone
            obj.agent.groups.add(obj.group)
        _recheck_frames(obj)

    def response_add(self, request: HttpRequest, obj: Any, *args: Any) -> HttpResponse:
        """Display a new secret once, or the page with what to copy."""
        if secret := vars(request).pop("new_secret", ""):
            return self._render_secret(request, obj, secret)
        request.POST = cast(Any, request.POST.copy() | {"_continue": "1"})
        return super().response_add(request, obj, *args)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if secret := vars(request).pop("new_secret", ""):
            return self._render_secret(request, obj, secret)
        return super().response_change(request, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        _recheck_frames(obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for embed in queryset:
            _recheck_frames(embed)
        super().delete_queryset(request, queryset)

    def rotate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make a new secret, and display it once; the old one stops working at once."""
        if request.method != "POST" or not self.has_change_permission(request):
            raise PermissionDenied
        embed = get_object_or_404(Embed, pk=pk)
        secret = embed.new_secret()
        embed.save(update_fields=["secret"])
        audit.record(request.user, audit.SECRET_ROTATED, embed, name=embed.name)
        _recheck_frames(embed)
        return self._render_secret(request, embed, secret)

    def _render_secret(self, request: HttpRequest, embed: Embed, secret: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": gettext_lazy("Signing secret"),
            "opts": self.opts,
            "embed": embed,
            "secret": secret,
            "examples": embed_examples.identity_examples(request, embed),
            "next_url": reverse("admin:agents_embed_change", args=[embed.pk]),
        }
        response = render(request, f"{DIR}/secret.html", context)
        add_never_cache_headers(response)
        return response

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Let the form have a frame: its preview."""
        return cast(Any, allow_frames(super().changeform_view))(request, *args, **options)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        embed = options.get("obj")
        if embed is not None and embed.pk:
            query = urlencode({"q": f'group:"{embed.group.name}"'})
            context["runs_url"] = f"{reverse('trace:list')}?{query}"
            context["examples"] = embed_examples.page_examples(request, embed)
            if embed.agent.tools.filter(name=SearchTool.name).exists():
                context["searched"] = scope.for_visitors(embed.group_id, embed.agent).rows()
            context["preview_url"] = _preview_url(request, embed)
            context["preview_token"] = embed_examples.preview_token(embed, request.user)
        return super().render_change_form(request, context, *args, **options)


def _preview_url(request: HttpRequest, embed: Embed) -> str:
    query = urlencode({"preview": "1", "host": origin_of(request)})
    return f"{reverse('chat:embed', args=[embed.public_id])}?{query}"


def _quotas(embed: Embed) -> QuerySet[Quota]:
    """Return the limits on messages of an embedded chat's visitors."""
    return Quota.objects.filter(group=embed.group_id or 0, measure=Measure.MESSAGES)


def _free_group_name(name: str, own: Group | None = None) -> str:
    others = Group.objects.exclude(pk=own.pk if own else 0)
    base = f"{GROUP_PREFIX}{name}"
    numbered = (f"{base} {number}" for number in range(2, others.count() + 3))
    return next(free for free in (base, *numbered) if not others.filter(name=free).exists())


def _recheck_frames(embed: Embed) -> None:
    """Have open frames check their access, once this is saved."""
    topic = embed.topic

    def publish() -> None:
        async_to_sync(pubsub.publish)(topic, pubsub.REFRESH_KIND)

    transaction.on_commit(publish)
