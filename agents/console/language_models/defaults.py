"""The page of defaults: which model is used where none is chosen."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.catalog.language_models import model_setups
from agents.catalog.language_models.discovered_model import discovered_model
from agents.db.sentences import translate
from agents.models import LanguageModel, ToolRegistration

from ..admin_classes.pages import render_page
from . import model_page

VIEW = "agents.view_languagemodel"
CHANGE = "agents.change_languagemodel"
TEMPLATE = "admin/agents/languagemodel/defaults.html"


class DefaultsForm(forms.Form):
    """Chooses among the models that are on."""

    chat = forms.ModelChoiceField(
        label=gettext_lazy("Chat"),
        help_text=gettext_lazy("Answers for agents without a model of their own."),
        queryset=LanguageModel.objects.none(),
        required=False,
    )

    def __init__(self, *args: Any, may_change: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        rows = LanguageModel.objects.filter(enabled=True).order_by("label")
        chat = self.fields["chat"]
        chat.queryset = rows  # type: ignore[attr-defined]
        found = discovered_model()
        names = {"model": translate(found.label), "source": translate(found.source)}
        chat.empty_label = _("None: %(model)s (%(source)s)") % names  # type: ignore[attr-defined]
        self.initial.setdefault("chat", rows.filter(is_default=True).first())
        chat.disabled = not may_change


@permission_required(VIEW, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    may_change = request.user.has_perm(CHANGE)
    if request.method != "POST":
        return _render(request, DefaultsForm(may_change=may_change))
    if not may_change:
        raise PermissionDenied
    form = DefaultsForm(request.POST, may_change=may_change)
    if not form.is_valid():
        return _render(request, form, status=422)
    if form.has_changed():
        if row := form.cleaned_data["chat"]:
            model_page.make_default(request.user, row)
        else:
            model_page.clear_default(request.user)
    messages.success(
        request, _("Defaults saved.") if form.has_changed() else _("Nothing to save.")
    )
    return redirect("admin:agents_languagemodel_defaults")


def _render(request: HttpRequest, form: DefaultsForm, status: int = 200) -> HttpResponse:
    context = {
        "title": _("Models"),
        "form": form,
        "others": other_models(),
        "problem": _default_problem(),
        "may_change": not form.fields["chat"].disabled,
    }
    return render_page(request, TEMPLATE, context, status=status)


def _default_problem() -> str:
    """Return why the default model can't be used, or an empty string."""
    error = model_setups.configuration_error(model_setups.default_model().model)
    return translate(str(error)) if error else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherModel:
    """A model for another purpose."""

    purpose: str
    model: str
    source: str  # where it is set


def other_models() -> list[OtherModel]:
    """Return the models for search, sound and images, and where they are set."""
    environment = settings.ENVIRONMENT
    local = _("on this server")
    whisper = f"faster-whisper ({local})" if environment.whisper_model else ""
    embedding = environment.embedding_model
    configured = [
        (
            _("Search by meaning"),
            local if embedding == "local" else embedding,
            "EMBEDDING_MODEL",
        ),
        (_("Transcription"), environment.transcription_model or whisper, "TRANSCRIPTION_MODEL"),
        (_("Voice"), environment.speech_model or _("the browser's"), "SPEECH_MODEL"),
        (_("Image generation"), environment.image_model, "IMAGE_MODEL"),
        (_("Image description"), environment.vision_model, "VISION_MODEL"),
    ]
    models = [
        OtherModel(
            purpose=purpose, model=model or _("not configured"), source=f"ASHIATO_{variable}"
        )
        for purpose, model, variable in configured
    ]
    tools = ToolRegistration.objects.exclude(rerank_model="")
    models[1:1] = [
        OtherModel(purpose=_("Re-ranking"), model=model, source=name)
        for model, name in tools.values_list("rerank_model", "name")
    ]
    return models
