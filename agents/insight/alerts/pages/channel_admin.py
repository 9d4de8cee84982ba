"""Alert channels: notifications, email and webhooks, with a test and their deliveries."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.cache import add_never_cache_headers
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from agents.access import audit
from agents.access.names import display_name
from agents.access.requests import signed_in_user
from agents.console.admin_classes.audited import SET
from agents.console.admin_classes.model_admin import without_models
from agents.db.sanitize import parse_id
from agents.insight.alerts import delivery
from agents.insight.alerts.errors import DeliveryFailed
from agents.insight.alerts.messages import test_message
from agents.insight.alerts.models import (
    WEBHOOK_EVENTS,
    AlertChannel,
    AlertRule,
    Delivery,
    Event,
)
from agents.insight.alerts.people import selectable_people
from agents.insight.alerts.webhook_form import check_events, check_url, events_field
from agents.models import Agent, ReviewScope
from agents.web.presentation.formats.badges import badge

from .delivery_admin import TONES
from .scoped_admin import ScopedAdmin

Kind = AlertChannel.Kind
DIR = "admin/alerts/alertchannel"
KIND_FIELDS = {
    Kind.NOTIFICATION: ["people"],
    Kind.EMAIL: ["people", "addresses"],
    Kind.WEBHOOK: ["url", "events", "agent", "with_answer"],
}
MAX_DELIVERIES = 20
TESTED = "alert.tested"


class PeopleField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, person: Any) -> str:
        name = display_name(person)
        return f"{name} ({person.email})" if person.email else name


class ChannelForm(forms.ModelForm):
    channel_kind = Kind.NOTIFICATION
    # The agents of a reviewer with a scope, who can't have the events of others sent.
    agents: QuerySet[Agent] | None = None

    def clean_events(self) -> list[str]:
        return check_events(self.cleaned_data["events"], WEBHOOK_EVENTS)

    def clean_addresses(self) -> str:
        text: str = self.cleaned_data["addresses"]
        for address in AlertChannel(addresses=text).address_list:
            try:
                validate_email(address)
            except ValidationError as error:
                sentence = _("%(address)s isn't an email address.") % {"address": address}
                raise forms.ValidationError(sentence) from error
        return text

    def clean_url(self) -> str:
        return check_url(self.cleaned_data["url"])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.instance.kind = self.channel_kind
        if "people" in self.fields and not self.errors:
            people = cleaned.get("people")
            if not (people and people.exists()) and not cleaned.get("addresses"):
                self.add_error("people", _("Choose at least one recipient."))
        if cleaned.get("events") and self.agents is not None:
            agent = cleaned.get("agent")
            if agent is None or not self.agents.filter(pk=agent.pk).exists():
                self.add_error("agent", _("Choose one of your agents."))
        return cleaned


@admin.register(AlertChannel)
class AlertChannelAdmin(ScopedAdmin):
    form = ChannelForm
    list_display = ["name", "kind", "target", "used_by", "enabled", "state"]
    list_filter = ["kind", "enabled"]
    search_fields = ["name"]
    change_list_template = f"{DIR}/change_list.html"
    change_form_template = f"{DIR}/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(self.test_view)
        own = [
            path("<int:pk>/test/", test, name="alerts_alertchannel_test"),
            self.admin_path("<int:pk>/rotate/", self.rotate_view, "alerts_alertchannel_rotate"),
            self.admin_path("<int:pk>/replay/", self.replay_view, "alerts_alertchannel_replay"),
        ]
        return [*own, *super().get_urls()]

    # Form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        names = ["name", *KIND_FIELDS[_kind(request, obj)], "enabled"]
        if obj is not None and not self.has_change_permission(request, obj):
            names = ["host" if name == "url" else name for name in names]
        return [(None, {"fields": names})]

    @admin.display(description=gettext_lazy("host"))
    def host(self, channel: AlertChannel) -> str:
        return channel.host

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form_class = super().get_form(request, obj, change, **options)
        values = {
            "channel_kind": _kind(request, obj),
            "agents": ReviewScope.objects.agents_of(request.user),
        }
        return type("Form", (form_class,), values)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "people":
            options |= {
                "queryset": selectable_people().select_related("profile").order_by("username"),
                "form_class": PeopleField,
                "widget": forms.CheckboxSelectMultiple,
            }
        return super().formfield_for_manytomany(db_field, request, **options)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "events":
            return events_field(WEBHOOK_EVENTS, str(db_field.help_text))
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None and db_field.name == "addresses":
            field.widget.attrs["rows"] = 3
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Remember the address of this installation, for the links in messages."""
        obj.base_url = request.build_absolute_uri("/")[:200]
        if obj.kind == Kind.WEBHOOK and not obj.secret:
            vars(request)["new_secret"] = obj.new_secret()
        if obj.enabled:
            obj.paused_at = obj.failing_since = None
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, *args: Any) -> HttpResponse:
        """Display the new secret of a webhook, once."""
        if secret := vars(request).pop("new_secret", ""):
            return self._render_secret(request, obj, secret)
        return super().response_add(request, obj, *args)

    def _render_secret(
        self, request: HttpRequest, channel: AlertChannel, secret: str
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Signing secret"),
            "opts": self.opts,
            "channel": channel,
            "secret": secret,
            "next_url": reverse("admin:alerts_alertchannel_change", args=[channel.pk]),
        }
        response = render(request, f"{DIR}/secret.html", context)
        add_never_cache_headers(response)
        return response

    def rotate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make a new signing secret, and display it once."""
        channel = self._editable(request, pk)
        secret = channel.new_secret()
        channel.save()
        audit.record(request.user, audit.SECRET_ROTATED, channel, name=str(channel))
        return self._render_secret(request, channel, secret)

    def replay_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Send a delivery of a webhook again."""
        channel = self._editable(request, pk)
        rows = channel.deliveries.for_user(request.user)
        if delivery.replay(rows.filter(pk=parse_id(request.POST.get("delivery")) or 0)):
            audit.record(request.user, audit.WEBHOOK_REPLAYED, channel, name=str(channel))
            messages.success(request, _("Sending the delivery again."))
        return redirect("admin:alerts_alertchannel_change", pk)

    def _editable(self, request: HttpRequest, pk: int) -> AlertChannel:
        """Return a webhook that the user can change, for a POST request."""
        if request.method != "POST" or not self.has_change_permission(request):
            raise PermissionDenied
        rows = AlertChannel.objects.of_installation().editable_by(request.user)
        return get_object_or_404(rows, pk=pk, kind=Kind.WEBHOOK)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        context["channel_kind"] = _kind(request, row)
        context["kind_label"] = Kind(context["channel_kind"]).label
        if row is not None:
            visible = row.deliveries.for_user(request.user)
            context["deliveries"] = visible[:MAX_DELIVERIES]
        return super().render_change_form(request, context, *args, **options)

    def keep(self, request: HttpRequest, action: str, row: Any, changes: Any = None) -> None:
        """Leave the URL out of the audit log, because it may contain a secret."""
        if changes and "url" in changes:
            changes = {**changes, "url": SET}
        super().keep(request, action, row, changes)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Delete the log with its channel; it is counted only, as not all see each row."""
        rows, counts, missing, protected = super().get_deleted_objects(objs, request)
        missing.discard(Delivery._meta.verbose_name)
        return without_models(rows, [Delivery._meta]), counts, missing, protected

    # List

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertChannel]:
        rules = AlertRule.objects.for_user(request.user)
        visible_rules = Prefetch("rules", rules, to_attr="named_rules")
        rows: QuerySet[AlertChannel] = super().get_queryset(request).filter(owner=None)
        return rows.prefetch_related(visible_rules, "summaries")

    @admin.display(description=gettext_lazy("to"))
    def target(self, channel: AlertChannel) -> str:
        if channel.kind == Kind.WEBHOOK:
            return channel.host
        names = [display_name(person) for person in channel.people.all()[:4]]
        return ", ".join([*names, *channel.address_list][:4])

    @admin.display(description=pgettext_lazy("alert channel", "used by"))
    def used_by(self, channel: Any) -> str:
        names = [user.name for user in [*channel.named_rules, *channel.summaries.all()]]
        names += [str(label) for value, label in Event.choices if value in channel.events]
        return ", ".join(names) or "—"

    @admin.display(description=gettext_lazy("last delivery"))
    def state(self, channel: AlertChannel) -> SafeString | str:
        last = channel.deliveries.first()
        if last is None:
            return "—"
        tone = TONES[last.status]
        return badge(last.get_status_display(), tone, last.last_error)

    # Test

    def test_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Send a test message now, and say whether it arrived."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        rows = AlertChannel.objects.of_installation().editable_by(request.user)
        channel = get_object_or_404(rows, pk=pk)
        audit.record(request.user, TESTED, channel, name=channel.name)
        try:
            receiver = _send_test(request, channel)
            messages.success(request, _("Test sent to %(to)s.") % {"to": receiver})
        except DeliveryFailed as error:
            messages.error(request, _("The test failed: %(why)s") % {"why": error})
        return redirect("admin:alerts_alertchannel_change", pk)


def _send_test(request: HttpRequest, channel: AlertChannel) -> str:
    """Send it to the webhook, or to the user who tests; return where it went."""
    user = signed_in_user(request)
    message = test_message(request.build_absolute_uri("/"))
    if channel.kind == Kind.NOTIFICATION:
        user.notifications.create(event=message.event, text=message.text)
        return display_name(user)
    if channel.kind == Kind.WEBHOOK:
        outcome = delivery.send_test(channel, message)
        if not outcome.is_accepted:
            raise DeliveryFailed(outcome.error)
        return channel.host
    if not user.email:
        raise DeliveryFailed(_("Your account has no email address."))
    row = Delivery(
        channel=channel,
        event=message.event,
        address=user.email,
        subject=message.subject,
        text=message.text,
    )
    delivery.send_mail(row)
    return user.email


def _kind(request: HttpRequest, channel: Any) -> Any:
    if channel is not None:
        return Kind(channel.kind)
    chosen = request.GET.get("kind", "")
    return Kind(chosen) if chosen in Kind else Kind.NOTIFICATION
