"""Alert channels: notifications, email and webhooks, with a test and their deliveries."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from agents.access import audit
from agents.access.names import display_name
from agents.access.requests import signed_in_user
from agents.console.admin_classes.audited import SET
from agents.console.admin_classes.model_admin import without_models
from agents.db.sentences import translate
from agents.insight.alerts import delivery, webhooks
from agents.insight.alerts.errors import DeliveryFailed
from agents.insight.alerts.messages import test_message
from agents.insight.alerts.models import AlertChannel, AlertRule, Delivery
from agents.insight.alerts.people import selectable_people
from agents.tools.egress import EgressRefused
from agents.web.presentation.formats.badges import badge

from .delivery_admin import TONES
from .scoped_admin import ScopedAdmin

Kind = AlertChannel.Kind
DIR = "admin/alerts/alertchannel"
KIND_FIELDS = {
    Kind.NOTIFICATION: ["people"],
    Kind.EMAIL: ["people", "addresses"],
    Kind.WEBHOOK: ["url", "secret"],
}
MAX_DELIVERIES = 20
TESTED = "alert.tested"


class PeopleField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, person: Any) -> str:
        name = display_name(person)
        return f"{name} ({person.email})" if person.email else name


class ChannelForm(forms.ModelForm):
    channel_kind = Kind.NOTIFICATION

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "secret" in self.fields and self.instance.secret:
            self.fields["secret"].help_text = _("A secret is saved. Leave empty to keep it.")

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
        url: str = self.cleaned_data["url"]
        if not url:
            raise forms.ValidationError(_("Enter the URL that receives the alerts."))
        try:
            exemption = webhooks.policy().required_exemption(url)
        except EgressRefused as error:
            raise forms.ValidationError(translate(str(error))) from error
        if exemption:
            sentence = _(
                "%(place)s is a private address. An administrator can add it to "
                "ASHIATO_EGRESS_ALLOW."
            )
            raise forms.ValidationError(sentence % {"place": exemption})
        return url

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.instance.kind = self.channel_kind
        if "people" in self.fields and not self.errors:
            people = cleaned.get("people")
            if not (people and people.exists()) and not cleaned.get("addresses"):
                self.add_error("people", _("Choose at least one recipient."))
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
        own = [path("<int:pk>/test/", test, name="alerts_alertchannel_test")]
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
        return type("Form", (form_class,), {"channel_kind": _kind(request, obj)})

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "people":
            options |= {
                "queryset": selectable_people().select_related("profile").order_by("username"),
                "form_class": PeopleField,
                "widget": forms.CheckboxSelectMultiple,
            }
        return super().formfield_for_manytomany(db_field, request, **options)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None and db_field.name == "secret":
            field.widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
        if field is not None and db_field.name == "addresses":
            field.widget.attrs["rows"] = 3
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Remember the address of this installation, for the links in messages."""
        obj.base_url = request.build_absolute_uri("/")[:200]
        super().save_model(request, obj, form, change)

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
        rows: QuerySet[AlertChannel] = super().get_queryset(request)
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
        channel = get_object_or_404(AlertChannel.objects.editable_by(request.user), pk=pk)
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
    address = channel.host if channel.kind == Kind.WEBHOOK else user.email
    if not address:
        raise DeliveryFailed(_("Your account has no email address."))
    row = Delivery(
        channel=channel,
        event=message.event,
        address=address,
        subject=message.subject,
        text=message.text,
        payload=message.payload(),
    )
    delivery.send(row)
    return address


def _kind(request: HttpRequest, channel: Any) -> Any:
    if channel is not None:
        return Kind(channel.kind)
    chosen = request.GET.get("kind", "")
    return Kind(chosen) if chosen in Kind else Kind.NOTIFICATION
