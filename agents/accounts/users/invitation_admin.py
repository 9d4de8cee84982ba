"""Invitations in the console: the form, the list, and its actions."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.access.requests import signed_in_user
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.models.types import LazyText
from agents.web.presentation.formats.badges import badge
from agents.web.presentation.formats.dates import timestamp

from ..models import Invitation
from . import invitations
from .invitation_form import InviteForm

TONES = {"open": "blue", "used": "green", "expired": "amber", "revoked": "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A link that is displayed once."""

    email: str
    link: str
    is_sent: bool


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return Invitation.State.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        current_time = timezone.now()
        used = Q(uses__gte=F("max_uses"))
        valid = Q(revoked_at=None)
        conditions = {
            "open": valid & ~used & Q(expires_at__gt=current_time),
            "used": valid & used,
            "expired": valid & ~used & Q(expires_at__lte=current_time),
            "revoked": ~valid,
        }
        chosen = conditions.get(self.value() or "")
        return queryset.filter(chosen) if chosen is not None else queryset


@admin.action(description=_("Revoke"), permissions=["change"])
def revoke_selected(console: Any, request: HttpRequest, rows: Any) -> None:
    count = invitations.revoke(rows, request.user)
    done = ngettext("%(count)d invitation revoked.", "%(count)d invitations revoked.", count)
    messages.success(request, done % {"count": count})


@admin.register(Invitation)
class InvitationAdmin(ConsoleAdmin):
    can_restore = False
    change_list_template = "admin/people/invitations.html"
    list_display = ["recipient", "role_label", "in_groups", "used", "expires", "by", "buttons"]
    list_display_links = None
    list_filter = [StateFilter, "role"]
    search_fields = ["email", "invited_by__username"]
    list_select_related = ["invited_by"]
    actions = [revoke_selected]
    ordering = ["-pk"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        return super().get_queryset(request).prefetch_related("groups")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # there is a page for it

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def may_invite(self, request: HttpRequest) -> bool:
        return request.user.has_perms(["auth.add_user", "people.add_invitation"])

    @admin.display(description=_("recipient"), ordering="email")
    def recipient(self, row: Invitation) -> Any:
        name = row.email or (_("Link") if row.max_uses > 1 else _("One user"))
        return format_html("{} {}", name, badge(row.state.label, TONES[row.state]))

    @admin.display(description=_("role"), ordering="role")
    def role_label(self, row: Invitation) -> LazyText:
        return row.get_role_display()

    @admin.display(description=_("groups"))
    def in_groups(self, row: Invitation) -> str:
        return ", ".join(group.name for group in row.groups.all()) or "—"

    @admin.display(description=_("uses"))
    def used(self, row: Invitation) -> str:
        return f"{row.uses} / {row.max_uses}"

    @admin.display(description=_("expires"), ordering="expires_at")
    def expires(self, row: Invitation) -> str:
        return timestamp(row.expires_at)

    @admin.display(description=_("invited by"), ordering="invited_by__username")
    def by(self, row: Invitation) -> str:
        return str(row.invited_by or "—")

    @admin.display(description="")
    def buttons(self, row: Invitation) -> Any:
        if row.state == Invitation.State.USED:
            return ""
        actions = [("renew", _("New link"))]
        is_open = row.state == Invitation.State.OPEN
        actions += [("revoke", _("Revoke"))] if is_open else []
        if row.state == Invitation.State.REVOKED:
            actions = [("restore", _("Undo"))]
        return format_html_join(
            "",
            '<button class="button" formmethod="post" formaction="{}">{}</button> ',
            (
                (reverse(f"admin:people_invitation_{name}", args=[row.pk]), label)
                for name, label in actions
            ),
        )

    def get_urls(self) -> list[URLPattern]:
        def admin_path(route: str, view: Any, name: str) -> URLPattern:
            return path(
                route, self.admin_site.admin_view(view), name=f"people_invitation_{name}"
            )

        own = [
            admin_path("new/", self.invite, "new"),
            admin_path("<int:pk>/renew/", require_POST(self.renew), "renew"),
            admin_path("<int:pk>/revoke/", require_POST(self.revoke), "revoke"),
            admin_path("<int:pk>/restore/", require_POST(self.restore), "restore"),
        ]
        return [*own, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        context = {"may_invite": self.may_invite(request), "can_send": invitations.can_send()}
        return super().changelist_view(request, context | (extra_context or {}))

    def invite(self, request: HttpRequest) -> HttpResponse:
        """Create invitations, and display their links once."""
        if not self.may_invite(request):
            raise PermissionDenied
        inviter = signed_in_user(request)
        form = InviteForm(inviter, request.POST if request.method == "POST" else None)
        if request.method != "POST" or not form.is_valid():
            return self._render_form(request, form)
        is_mailed = form.cleaned_data["way"] == "email"
        emails = form.cleaned_data["emails"] if is_mailed else [""]
        links = []
        for email in emails:
            try:
                invitation, token = invitations.create(inviter, form.terms(), email)
            except invitations.InvitationRejected as reason:
                form.add_error("emails" if email else None, str(reason))
                continue
            links.append(self._deliver(request, invitation, token))
        return self._render_links(request, links) if links else self._render_form(request, form)

    def _deliver(self, request: HttpRequest, invitation: Invitation, token: str) -> NewLink:
        link = invitations.url_of(request, token)
        email = invitation.email
        is_mailed = bool(email) and invitations.can_send()
        is_sent = is_mailed and invitations.send(invitation, link, signed_in_user(request))
        if is_mailed and not is_sent:
            problem = _(
                "%(email)s: the mail server rejected the message. Send the link yourself."
            )
            messages.warning(request, problem % {"email": email})
        return NewLink(email=email, link=link, is_sent=is_sent)

    def _render_form(self, request: HttpRequest, form: InviteForm) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Invite users"),
            "form": form,
            "can_send": invitations.can_send(),
        }
        status = 422 if form.errors else 200
        return render(request, "admin/people/invite.html", context, status=status)

    def _render_links(self, request: HttpRequest, links: list[NewLink]) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Invitation created"),
            "links": links,
        }
        response = render(request, "admin/people/invited.html", context)
        response["Cache-Control"] = "no-store"
        return response

    def renew(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Create a new link, send it, and display it once."""
        invitation = self._get(request, pk)
        if not self.may_invite(request) or invitation.state == Invitation.State.USED:
            raise Http404
        try:
            token = invitations.renew(invitation, signed_in_user(request))
        except invitations.InvitationRejected as reason:
            messages.error(request, str(reason))
            return redirect("admin:people_invitation_changelist")
        return self._render_links(request, [self._deliver(request, invitation, token)])

    def revoke(self, request: HttpRequest, pk: int) -> HttpResponse:
        rows = Invitation.objects.filter(pk=self._get(request, pk).pk)
        if invitations.revoke(rows, request.user):
            messages.success(request, _("The invitation was revoked. You can undo this."))
        return redirect("admin:people_invitation_changelist")

    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Undo a revocation; that grants the role again, so the user must be able to."""
        invitation = self._get(request, pk)
        user = signed_in_user(request)
        if not invitations.can_grant(user, invitation.role, invitation.groups.all()):
            raise PermissionDenied
        rows = Invitation.objects.filter(pk=invitation.pk)
        if invitations.revoke(rows, request.user, undo=True):
            messages.success(request, _("The invitation is valid again."))
        return redirect("admin:people_invitation_changelist")

    def _get(self, request: HttpRequest, pk: int) -> Invitation:
        invitation = Invitation.objects.filter(pk=pk).first()
        if not self.has_change_permission(request):
            raise PermissionDenied
        if invitation is None:
            raise Http404
        return invitation
