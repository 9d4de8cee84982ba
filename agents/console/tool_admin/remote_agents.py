"""The page that adds an agent elsewhere by its card (A2A), as a tool that agents can use."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from agents.catalog import mcp_servers
from agents.db.sentences import translate
from agents.models import ToolRegistration
from agents.tools.a2a import CARD_PATH, RemoteAgentTool, RemoteCard, read_card
from agents.tools.egress import EgressFailed, EgressRefused, fetch
from agents.tools.http.definition import validate_headers

from ..admin_classes.pages import render_page
from .openapi_import import NEXT_STEP

TEMPLATE = "admin/agents/toolregistration/remote_agent.html"
FETCH_SECONDS = 15.0
MAX_CARD_BYTES = 1_000_000
TIMEOUT_SECONDS = 300
TITLE = _("Add A2A agent")
NAME_TAKEN = _("A tool with this name already exists.")
PRIVATE_ADDRESS = _(
    "The URL is on a private network. %(name)s can't reach it until you add "
    "%(place)s to ASHIATO_EGRESS_ALLOW."
)
UNREACHABLE = _("The agent card couldn’t be read: HTTP %(status)s from %(url)s.")


class RemoteAgentForm(forms.Form):
    """The address of an agent's card, and the key for it."""

    url = forms.URLField(
        label=_("Card URL"),
        max_length=500,
        assume_scheme="https",
        widget=forms.URLInput(attrs={"placeholder": "https://agents.example.com"}),
        help_text=_("The URL of the agent card, or just the agent’s address."),
    )
    name = forms.SlugField(
        label=_("Name"),
        max_length=64,
        help_text=_("The name that agents call it by, e.g. legal_desk."),
    )
    key = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=5_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Sent as “Authorization: Bearer …”. Stored encrypted."),
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if ToolRegistration.objects.filter(name=name).exists():
            raise forms.ValidationError(NAME_TAKEN)
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        key = cleaned["key"].strip()
        bare = key[7:].strip() if key.lower().startswith("bearer ") else key
        try:
            self.headers = validate_headers({"Authorization": f"Bearer {bare}"} if bare else {})
            self.card = _fetch_card(cleaned["url"], self.headers)
            RemoteAgentTool(self.definition(), self.card.url, headers=self.headers)
        except (ValueError, EgressRefused, EgressFailed) as error:
            raise forms.ValidationError(translate(str(error))) from error
        return cleaned

    def definition(self) -> dict[str, Any]:
        """Return the tool's definition: what the model sees, and how the agent is called."""
        return {
            "name": self.cleaned_data["name"],
            "description": self.card.description or self.card.name,
            "parameters": dict(RemoteAgentTool.parameters),
            "a2a": {"streams": self.card.streams, "tenant": self.card.tenant},
        }

    def save(self) -> ToolRegistration:
        return ToolRegistration.objects.create(
            name=self.cleaned_data["name"],
            source=ToolRegistration.Source.HTTP,
            definition=self.definition(),
            endpoint=self.card.url,
            headers=self.headers,
            timeout=TIMEOUT_SECONDS,
        )


def _fetch_card(url: str, headers: dict[str, str]) -> RemoteCard:
    """Fetch a card through the egress policy; raise ValueError if it can't be used."""
    if not urlsplit(url).path.endswith(".json"):
        url = url.rstrip("/") + CARD_PATH
    policy = replace(mcp_servers.egress(), timeout=FETCH_SECONDS, most_bytes=MAX_CARD_BYTES)
    response = async_to_sync(fetch)("GET", url, policy=policy, headers=headers)
    if response.status != 200:
        raise ValueError(UNREACHABLE % {"status": response.status, "url": url})
    return read_card(response.content, url)


@sensitive_post_parameters()
def page(request: HttpRequest, console: Any) -> HttpResponse:
    """Read an agent's card, and add the agent as a tool."""
    if not console.has_add_permission(request):
        raise PermissionDenied
    form = RemoteAgentForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        context = {"title": TITLE, "opts": console.opts, "form": form}
        return render_page(request, TEMPLATE, context)
    row = form.save()
    console.log_addition(request, row, [{"added": {}}])
    messages.info(
        request, format_html(str(NEXT_STEP), reverse("admin:agents_agent_changelist"))
    )
    if exemption := mcp_servers.egress().required_exemption(row.endpoint):
        values = {"name": row.name, "place": exemption}
        messages.warning(request, PRIVATE_ADDRESS % values)
    return redirect("admin:agents_toolregistration_change", row.pk)
