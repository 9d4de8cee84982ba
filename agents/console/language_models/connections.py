"""Connections: a provider's URL and key once, then its models with a tick each."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.db.models import Count, Q
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.catalog.agent_factory import CIRCUITS
from agents.db.sentences import translate
from agents.llm.discovery import discovery
from agents.llm.discovery.model_probe import ProbeResult
from agents.models import LanguageModel, ModelConnection
from agents.models.types import AnyUser

from ..admin_classes.json_field import JsonObjectField
from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import render_page
from . import connection_models, listed_models, model_state, model_tester
from .connection_form import ConnectionForm, ConnectionPageForm
from .model_providers import (
    CARDS,
    ProviderCard,
    card_of,
    default_card,
    environment_key,
    provider_label,
)
from .model_tester import NDJSON_TYPE, KeyCheck

FIELDS = ("base_url", "api_key", "api_version", "region", "secrets", "options")
TEMPLATES = "admin/agents/modelconnection"
TESTED_AT_ONCE = 4


@admin.register(ModelConnection)
class ModelConnectionAdmin(ConsoleAdmin):
    form = ConnectionForm
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}

    # The form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Return the fields that the provider needs first, and all others folded."""
        card = self._card(request, obj)
        needed = [name for name in card.fields if name in FIELDS]
        if not card.prefix:
            needed.insert(0, "prefix")
        hidden = (
            ["provider", "preset"] if "prefix" in needed else ["provider", "preset", "prefix"]
        )
        others = [name for name in FIELDS if name not in needed]
        if obj is not None and obj.api_key:
            others.insert(0, "forget_key")
        return [
            (None, {"fields": [tuple(hidden), "name", *needed]}),
            (_("Advanced settings"), {"fields": others, "classes": ["collapse"]}),
        ]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        options = {"form": ConnectionPageForm, **options}
        return super().get_form(request, obj, change, **options)

    def _card(self, request: HttpRequest, obj: Any = None) -> ProviderCard:
        if obj is not None:
            return card_of(obj)
        submitted = request.POST if request.method == "POST" else request.GET
        chosen = (
            submitted.get("preset")
            or request.GET.get("provider")
            or submitted.get("provider")
            or ""
        )
        return CARDS.get(chosen) or default_card(chosen)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        card = self._card(request)
        return {"provider": card.provider, "preset": card.key, "prefix": card.prefix}

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the first connection: the page of each lists all of them."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        first = ModelConnection.objects.first()
        if request.method != "GET":
            return redirect("admin:agents_modelconnection_changelist")
        if first is not None:
            url = reverse("admin:agents_modelconnection_change", args=[first.pk])
            return self.change_view(request, str(first.pk), form_url=url)
        if self.has_add_permission(request):
            return self._choose_provider(request)
        context = {"opts": self.opts, "title": _("Connections"), **self._tabs(request)}
        return render_page(request, f"{TEMPLATES}/none.html", context)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Ask for the provider first."""
        is_chosen = request.method == "POST" or request.GET.get("provider") in CARDS
        if is_chosen or not self.has_add_permission(request):
            return super().add_view(request, form_url, extra_context)
        return self._choose_provider(request)

    def _choose_provider(self, request: HttpRequest) -> HttpResponse:
        context = {
            "opts": self.opts,
            "title": _("Add connection"),
            "from_environment": environment_providers(),
            "popular": [card for card in CARDS.values() if card.is_popular],
            "more": [card for card in CARDS.values() if not card.is_popular],
            **self._tabs(request),
        }
        return render_page(request, f"{TEMPLATES}/providers.html", context)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        context |= self._tabs(request)
        context["card"] = self._card(request, row)
        context["connections"] = list_connections(row)
        context["environment_connections"] = environment_providers()
        if row is not None:
            listing = listed_models.listing_of(row)
            rows = connection_models.list_rows(row, listing)
            context |= {
                "listing": listing,
                "rows": rows,
                "on": sum(model.is_on for model in rows),
                "provider_label": provider_label(row),
                "may_choose": connection_models.can_choose(request.user),
                "first_on": next((model for model in rows if model.is_on), None),
            }
        context |= dict.fromkeys(["show_save_and_continue", "show_save_and_add_another"], False)
        return super().render_change_form(request, context, *args, **options)

    def _tabs(self, request: HttpRequest) -> dict[str, Any]:
        """Return the tabs of the menu's entry, which only lists have otherwise."""
        menu = self.admin_site.get_app_list(request)
        entry = next((entry for entry in menu if entry["app_label"] == "models"), None)
        if entry is None:
            return {}
        return {"page_group": entry["name"], "page_tabs": entry["models"]}

    # Saving

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change or {*form.changed_data} & {*FIELDS, "prefix", "provider", "forget_key"}:
            for label in obj.models.values_list("label", flat=True):
                CIRCUITS.close(f"model:{label}")  # earlier failures no longer apply
            # After the transaction, because a server may take seconds to answer.
            vars(request)["must_list"] = True

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if change and "models_shown" in request.POST:
            self._save_choice(request, form.instance)

    def _save_choice(self, request: HttpRequest, row: ModelConnection) -> None:
        # What the form recorded as its changes is about the connection.
        changes = vars(request).pop("changes", {})
        try:
            connection_models.save_choice(
                request,
                row,
                request.POST.getlist("models"),
                set(request.POST.getlist("models_shown")),
            )
        except ValidationError as error:
            for sentence in error.messages:
                messages.warning(request, translate(sentence))
        vars(request)["changes"] = changes

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: Any = None
    ) -> HttpResponse:
        self._list_after_saving(request, obj)
        return redirect("admin:agents_modelconnection_change", obj.pk)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if vars(request).get("must_list"):
            self._list_after_saving(request, obj)
        if "_chat" in request.POST:
            rows = obj.models.filter(enabled=True).order_by("label")
            row = rows.filter(model=request.POST["_chat"]).first() or rows.first()
            if row is not None:
                query = urlencode({"model": row.label})
                return HttpResponseRedirect(f"{reverse('chat:new')}?{query}")
            messages.warning(request, _("Choose a model first."))
        elif not vars(request).get("must_list"):
            messages.success(request, _("Saved %(name)s.") % {"name": obj.name})
        return redirect("admin:agents_modelconnection_change", obj.pk)

    def _list_after_saving(self, request: HttpRequest, row: ModelConnection) -> None:
        listing = listed_models.refresh(request.user, row)
        name = {"name": row.name}
        if listing.error:
            sentence = _("Saved %(name)s, but its models couldn’t be listed.") % name
            messages.warning(request, sentence)
        elif row.models.exists():
            messages.success(request, _("Saved %(name)s.") % name)
        else:
            sentence = _("Connected %(name)s. Choose the models to use.")
            messages.success(request, sentence % name)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Say what uses the connection's models before they are deleted with it."""
        row = self.get_object(request, object_id)
        uses = connection_models.uses_of(row) if row is not None else []
        context = {"model_uses": uses, **(extra_context or {})}
        return super().delete_view(request, object_id, context)

    # Its models

    def get_urls(self) -> list[URLPattern]:
        prefix = "agents_modelconnection"
        return [
            self.admin_path("<int:pk>/refresh/", self.refresh_view, f"{prefix}_refresh"),
            self.admin_path("<int:pk>/test/", self.test_view, f"{prefix}_test"),
            *super().get_urls(),
        ]

    def _changeable(self, request: HttpRequest, pk: int) -> ModelConnection:
        if not self.has_change_permission(request):
            raise PermissionDenied
        return get_object_or_404(ModelConnection, pk=pk)

    def refresh_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask the server for its models again."""
        row = self._changeable(request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        listing = listed_models.refresh(request.user, row)
        level = messages.success if listing.is_good else messages.error
        level(request, listing.sentence)
        return redirect("admin:agents_modelconnection_change", pk)

    def test_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Save which models are on, and test all of them."""
        row = self._changeable(request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if "models_shown" in request.POST and connection_models.can_choose(request.user):
            with transaction.atomic():
                self._save_choice(request, row)
        rows = list(row.models.filter(enabled=True).order_by("label"))
        for model in rows:
            model.connection = row
            # Recorded before it starts, because it sends the key to the URL.
            details = model_tester.audit_details(model)
            audit.record(request.user, audit.MODEL_TESTED, model, **details)
        user = signed_in_user(request)
        if request.accepts(NDJSON_TYPE) and not request.accepts("text/html"):
            pieces = _stream_tests(user, rows, translation.get_language() or "en")
            # Proxies must not buffer it.
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return StreamingHttpResponse(pieces, content_type=NDJSON_TYPE, headers=headers)
        async_to_sync(_test_all)(user, rows)
        text = ngettext("%(count)d model tested.", "%(count)d models tested.", len(rows))
        messages.success(request, text % {"count": len(rows)})
        return redirect("admin:agents_modelconnection_change", pk)


def list_connections(current: ModelConnection | None) -> list[dict[str, Any]]:
    """Return all connections with how many of their models are on."""
    is_on = Count("models", filter=Q(models__enabled=True))
    return [
        {
            "row": row,
            "card": card_of(row),
            "on": row.on,
            "total": max(len(row.listing.get("models", ())), row.on),
            "problem": _short_problem(row),
            "is_current": current is not None and row.pk == current.pk,
        }
        for row in ModelConnection.objects.annotate(on=is_on)
    ]


def _short_problem(row: ModelConnection) -> str:
    if not row.listing.get("error"):
        return ""
    return _("Key rejected") if row.listing.get("is_key_wrong") else _("Not connected")


def environment_providers() -> list[dict[str, Any]]:
    """Return providers whose key is in the environment and that have no connection yet."""
    connected = {row.prefix for row in ModelConnection.objects.all() if environment_key(row)}
    found: list[dict[str, Any]] = []
    for provider in discovery.DEFAULT_PROVIDERS:
        if provider.prefix in connected:
            continue
        row = ModelConnection(prefix=provider.prefix)
        if variable := environment_key(row):
            card = next(c for c in CARDS.values() if c.prefix == provider.prefix)
            found.append({"card": card, "variable": variable})
    return found


async def _stream_tests(
    user: AnyUser, rows: list[LanguageModel], language: str
) -> AsyncIterator[str]:
    """Yield the row of each model as soon as it is tested."""
    tests = [asyncio.ensure_future(test) for test in _tests(user, rows)]
    try:
        for done in asyncio.as_completed(tests):
            row = await done
            html = await sync_to_async(_render_state, thread_sensitive=True)(row, language)
            yield json.dumps({"model": row.model, "html": html}, ensure_ascii=False) + "\n"
    finally:
        for test in tests:
            test.cancel()


async def _test_all(user: AnyUser, rows: list[LanguageModel]) -> None:
    await asyncio.gather(*_tests(user, rows))


def _tests(user: AnyUser, rows: list[LanguageModel]) -> list[Any]:
    """Return the tests of these models, of which a few run at once."""
    slots = asyncio.Semaphore(TESTED_AT_ONCE)

    async def test(row: LanguageModel) -> LanguageModel:
        async with slots:
            results: list[ProbeResult] = []
            failure = None
            async for piece in model_tester.run_probe(user, row):
                if isinstance(piece, KeyCheck):
                    failure = piece.error
                elif isinstance(piece, ProbeResult):
                    results.append(piece)
        record = model_state.test_record(failure, results)
        await sync_to_async(model_state.save_record, thread_sensitive=True)(row, record)
        row.last_test = record
        if record["works"]:
            CIRCUITS.close(f"model:{row.label}")  # earlier failures no longer apply
        return row

    return [test(row) for row in rows]


def _render_state(row: LanguageModel, language: str) -> str:
    with translation.override(language):
        context = {"row": connection_models.saved_row(row)}
        return render_to_string(f"{TEMPLATES}/_model_state.html", context)
