"""The page of defaults: which model is used for each purpose where none is chosen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.formats import number_format
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.catalog.language_models import model_setups
from agents.catalog.language_models.discovered_model import discovered_model
from agents.db.installation import default_models
from agents.db.installation.default_models import (
    EMBEDDING,
    SPEECH,
    SPEECH_VOICE,
    TRANSCRIPTION,
    TRANSCRIPTION_LANGUAGE,
    ModelSetting,
)
from agents.db.installation.setting import Setting, TextSetting, save
from agents.db.sentences import translate
from agents.knowledge import embeddings
from agents.knowledge.retrieval import reindexing
from agents.llm import parameters
from agents.metering.budgets import paying
from agents.models import EmbeddingIndex, LanguageModel, ModelConnection, ToolRegistration
from agents.web.presentation.formats.formatting import cost

from ..admin_classes.pages import render_page
from . import default_choices, default_tests, model_page
from .model_form import full_name
from .model_tester import ProbeLine

VIEW = "agents.view_languagemodel"
CHANGE = "agents.change_languagemodel"
CHANGE_SETTINGS = "agents.change_installationsetting"
TEMPLATE = "admin/agents/languagemodel/defaults.html"
CHAT = "chat"
# What else is set with a model.
EXTRAS: dict[str, TextSetting] = {
    TRANSCRIPTION.key: TRANSCRIPTION_LANGUAGE,
    SPEECH.key: SPEECH_VOICE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRow:
    """A purpose on the page: its model, and what is set with it."""

    field: forms.BoundField
    setting: ModelSetting | None = None  # the chat model is a row instead
    typed: forms.BoundField | None = None
    extra: forms.BoundField | None = None
    extra_setting: TextSetting | None = None
    note: str = ""

    @property
    def has_own(self) -> bool:
        """Whether there is something to test without a model of a connection."""
        return self.setting is None or default_tests.has_own(self.setting.key)


class DefaultsForm(forms.Form):
    """Chooses a model for each purpose; what the environment sets is disabled."""

    chat = forms.ModelChoiceField(
        label=gettext_lazy("Chat"),
        help_text=gettext_lazy("Answers for agents without a model of their own."),
        queryset=LanguageModel.objects.none(),
        required=False,
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        may_change: bool,
        may_change_settings: bool,
    ) -> None:
        super().__init__(data)
        rows = LanguageModel.objects.filter(enabled=True).select_related("connection")
        rows = rows.order_by("label")
        chat = self.fields[CHAT]
        chat.queryset = rows  # type: ignore[attr-defined]
        found = discovered_model()
        names = {"model": translate(found.label), "source": translate(found.source)}
        chat.empty_label = _("None: %(model)s (%(source)s)") % names  # type: ignore[attr-defined]
        self.initial.setdefault(CHAT, rows.filter(is_default=True).first())
        chat.disabled = not may_change
        connections = list(ModelConnection.objects.prefetch_related("models"))
        self._connections = {default_choices.typed_value(row): row for row in connections}
        for setting in default_models.MODELS.values():
            choices = default_choices.choices(setting, connections)
            field = forms.ChoiceField(choices=choices, initial=setting.model)
            self._add_field(setting, field, may_change_settings)
            if field.disabled:
                continue
            attrs = {"spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
            self.fields[typed_name(setting)] = forms.CharField(
                label=_("Name of the model"),
                required=False,
                max_length=default_models.MAX_NAME_CHARS,
                widget=forms.TextInput(attrs=attrs),
            )
        for extra in EXTRAS.values():
            line = forms.TextInput(attrs={"maxlength": int(extra.maximum)})
            text = forms.CharField(widget=line, initial=extra.value)
            self._add_field(extra, text, may_change_settings)

    def _add_field(self, setting: Setting[str], field: forms.Field, may_change: bool) -> None:
        field.label = str(setting.label)
        field.help_text = str(setting.help)
        field.required = False
        field.disabled = setting.is_fixed or not may_change
        field.show_hidden_initial = not field.disabled
        self.fields[setting.key] = field

    def rows(self) -> Iterator[DefaultRow]:
        yield DefaultRow(field=self[CHAT])
        for setting in default_models.MODELS.values():
            name = typed_name(setting)
            extra = EXTRAS.get(setting.key)
            yield DefaultRow(
                field=self[setting.key],
                setting=setting,
                typed=self[name] if name in self.fields else None,
                extra=self[extra.key] if extra else None,
                extra_setting=extra,
                note=_index_note() if setting is EMBEDDING else _deleted_note(setting),
            )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for setting in default_models.MODELS.values():
            if connection := self._connections.get(cleaned.get(setting.key, "")):
                cleaned[setting.key] = self._typed_model(setting, connection)
        for key, value in self.changed_values().items():
            try:
                cleaned[key] = default_models.SETTINGS[key].clean(value)
            except ValidationError as error:
                self.add_error(key, error)
        return cleaned

    def _typed_model(self, setting: ModelSetting, connection: ModelConnection) -> str:
        """Return the model with the typed name; the one in force if there is an error."""
        field = typed_name(setting)
        name = (self.cleaned_data.get(field) or "").strip()
        if not name:
            self.add_error(field, _("Enter the name of the model."))
            return setting.model
        try:
            model = full_name(connection, name)
        except ValidationError as error:
            self.add_error(field, error)
            return setting.model
        if problem := parameters.name_problem(model):
            self.add_error(field, translate(problem))
        return f"{connection.pk}:{model}"

    def changed_values(self) -> dict[str, str]:
        """Return the values of the settings that were changed on this page."""
        changed = {*self.changed_data}
        return {
            key: self.cleaned_data[key]
            for key in default_models.SETTINGS
            if key in changed and key in self.cleaned_data
        }

    def errors_of(self, key: str) -> list[str]:
        """Return what is wrong with the model of a purpose."""
        setting = default_models.MODELS.get(key)
        names = [key, typed_name(setting)] if setting else [key]
        return [str(sentence) for name in names for sentence in self.errors.get(name, ())]


def typed_name(setting: ModelSetting) -> str:
    """Return the field with the name of a model that isn't in the list."""
    return f"{setting.key}_name"


@permission_required(VIEW, raise_exception=True)
def page(request: UserRequest) -> HttpResponse:
    if request.method != "POST":
        return _render(request, _build_form(request))
    if not request.user.has_perm(CHANGE):
        raise PermissionDenied
    form = _build_form(request, request.POST)
    if not form.is_valid() or not _answers(request, form):
        return _render(request, form, status=422)
    messages.success(request, _save(request, form))
    return redirect("admin:agents_languagemodel_defaults")


@require_GET
@permission_required(VIEW, raise_exception=True)
def effect(request: UserRequest) -> HttpResponse:
    """Say what it takes to change to the embedding model that is chosen in the form."""
    form = _build_form(request, request.GET)
    form.is_valid()
    is_wrong = form.errors_of(EMBEDDING.key)
    model = EMBEDDING.model if is_wrong else form.cleaned_data[EMBEDDING.key]
    return HttpResponse(escape(describe_change(model)))


@require_POST
@permission_required(CHANGE, raise_exception=True)
def test(request: UserRequest, key: str) -> HttpResponse:
    """Test a model of the form, as it is chosen there; nothing else is saved."""
    if key != CHAT and key not in default_models.MODELS:
        raise Http404
    if key != CHAT and not request.user.has_perm(CHANGE_SETTINGS):
        raise PermissionDenied
    form = _build_form(request, request.POST)
    form.is_valid()
    if errors := form.errors_of(key):
        label = str(form.fields[key].label)
        line = ProbeLine(part=label, is_good=False, sentence=" ".join(errors))
    elif key == CHAT:
        line = default_tests.test_chat(request.user, form.cleaned_data[CHAT])
    else:
        line = default_tests.test_model(
            request.user, key, form.cleaned_data[key], form.cleaned_data
        )
    if request.htmx:
        return render(request, f"{TEMPLATE}#result", {"line": line})
    level = messages.success if line.is_good else messages.error
    level(request, f"{line.part}: {line.sentence} {line.more}".strip())
    return redirect("admin:agents_languagemodel_defaults")


def describe_change(model: str) -> str:
    """Return what changing to this embedding model takes; empty if it is in force."""
    if model == EMBEDDING.model:
        return ""
    if model == embeddings.OFF:
        return _("Search will find words only.")
    estimate = reindexing.estimate(model)
    if not estimate.passages:
        return _("Nothing has to be indexed again.")
    sentence = ngettext(
        "After saving, %(documents)s document (passages: %(passages)s) is indexed again in the "
        "background. Until then, searches use the old vectors.",
        "After saving, %(documents)s documents (passages: %(passages)s) are indexed again in "
        "the background. Until then, searches use the old vectors.",
        estimate.documents,
    )
    sentence %= {
        "documents": number_format(estimate.documents, force_grouping=True),
        "passages": number_format(estimate.passages, force_grouping=True),
    }
    if estimate.cost is None:
        unknown = _("What that costs isn’t known.")
        return f"{sentence} {unknown}"
    if estimate.cost:
        price = _("That costs about %(cost)s.") % {"cost": cost(estimate.cost)}
        return f"{sentence} {price}"
    return sentence


def _build_form(request: HttpRequest, data: Mapping[str, Any] | None = None) -> DefaultsForm:
    may_change = request.user.has_perm(CHANGE)
    may_change_settings = may_change and request.user.has_perm(CHANGE_SETTINGS)
    return DefaultsForm(data, may_change=may_change, may_change_settings=may_change_settings)


def _answers(request: UserRequest, form: DefaultsForm) -> bool:
    """Whether a newly chosen embedding model works: without it nothing would be indexed."""
    model = form.changed_values().get(EMBEDDING.key, "")
    if default_models.parse(model) is None:
        return True
    try:
        with paying(user=request.user.pk):
            embeddings.dimension(model)
    except embeddings.EmbeddingUnavailable as error:
        form.add_error(EMBEDDING.key, translate(str(error)))
        return False
    return True


@transaction.atomic
def _save(request: UserRequest, form: DefaultsForm) -> str:
    """Save what was changed, with audit entries; return what to say."""
    is_saved = CHAT in form.changed_data
    if is_saved:
        if row := form.cleaned_data[CHAT]:
            model_page.make_default(request.user, row)
        else:
            model_page.clear_default(request.user)
    is_reindexed = False
    for key, value in form.changed_values().items():
        setting = default_models.SETTINGS[key]
        sides = [default_models.label_of(side) for side in (setting.value, value)]
        if save(setting, value):
            changes = {"value": sides}
            audit.record(request.user, audit.SETTING_CHANGED, f"setting:{key}", changes=changes)
            is_saved = True
            is_reindexed |= setting is EMBEDDING and value != embeddings.OFF
    if is_reindexed:
        return _("Defaults saved. The documents are indexed again in the background.")
    return _("Defaults saved.") if is_saved else _("Nothing to save.")


def _render(request: UserRequest, form: DefaultsForm, status: int = 200) -> HttpResponse:
    rerankers = ToolRegistration.objects.exclude(rerank_model="")
    context = {
        "title": _("Models"),
        "form": form,
        "rows": list(form.rows()),
        "rerankers": rerankers.order_by("name"),
        "problem": _default_problem(),
        "may_change": not form.fields[CHAT].disabled,
        "may_test_settings": request.user.has_perm(CHANGE_SETTINGS),
        "has_connections": ModelConnection.objects.exists(),
    }
    return render_page(request, TEMPLATE, context, status=status)


def _default_problem() -> str:
    """Return why the default model can't be used, or an empty string."""
    error = model_setups.configuration_error(model_setups.default_model().model)
    return translate(str(error)) if error else ""


def _index_note() -> str:
    """Return how far the documents are indexed for the embedding model in force."""
    model = EMBEDDING.model
    if model == embeddings.OFF:
        return ""
    indexes = EmbeddingIndex.objects.exclude(status=EmbeddingIndex.Status.RETIRED)
    models = {index.model: index for index in indexes}
    index = models.get(model)
    if index is not None and index.problem:
        return translate(index.problem)
    if not models or (index is not None and index.status == EmbeddingIndex.Status.ACTIVE):
        return _deleted_note(EMBEDDING)
    if index is None or not index.total:
        return _("The documents will be indexed again in a moment.")
    done = {"done": f"{index.done:,}", "total": f"{index.total:,}"}
    return _("Indexing again: %(done)s of %(total)s passages.") % done


def _deleted_note(setting: ModelSetting) -> str:
    if setting.model == setting.value:
        return ""
    return _("The connection of the chosen model was deleted.")
