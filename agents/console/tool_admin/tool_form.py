"""The form of a tool, which rejects what the engine couldn't use."""

from copy import copy
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.forms.models import construct_instance
from django.utils.translation import gettext_lazy as _

from agents.catalog.language_models import model_setups
from agents.catalog.tools import tool_factory
from agents.db.installation import configured
from agents.db.installation.default_models import OFF
from agents.db.sentences import translate
from agents.models import Agent, ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.models.types import LazyText
from agents.tools.egress import EgressRefused, validate_url

from ..admin_classes.json_field import help_with_example
from ..admin_classes.secret_pairs import SecretPairsField, merge_pairs
from ..language_models.model_field import ModelInput
from .tool_settings import default_approval, effect, load_tool, requires_approval

Source = ToolRegistration.Source
Effect = ToolRegistration.Effect
SearchService = ToolRegistration.SearchService
EFFECTS_BY_HARM = [Effect.READ, Effect.IDEMPOTENT, Effect.AT_MOST_ONCE]
DEFINITION_KEYS = {"type", "name", "description", "parameters", "strict", "http", "a2a"}
PLACEHOLDER_URL = "https://example.com/"
EXAMPLE_DEFINITION = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Returns the weather forecast for a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "City name in English"},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
            },
            "required": ["city"],
        },
    },
}


def invalid_part(row: ToolRegistration) -> tuple[str, str] | None:
    """Return the invalid part of an HTTP tool and why, by adding parts one by one."""
    probe = ToolRegistration(name=row.name, method=row.method, endpoint=PLACEHOLDER_URL)
    for field in ("definition", "headers", "endpoint"):
        setattr(probe, field, getattr(row, field))
        try:
            tool_factory.http_tool(probe)
        except (ValueError, UnreadableSecret) as error:
            return field, translate(str(error))
    return None


def fallback_problem(row: ToolRegistration, fallback: ToolRegistration) -> LazyText | None:
    """Return why the fallback would never be used, or must not be."""
    params = {"name": row.name, "other": fallback.name}
    if row.pk == fallback.pk:
        return _("A tool can't be its own fallback.")
    if fallback.fallback_id is not None:
        return _("%(other)s already has a fallback. Fallbacks can't be chained.") % params
    if row.pk and (first := ToolRegistration.objects.filter(fallback=row).first()):
        params["first"] = first.name
        return (
            _("%(name)s is already the fallback for %(first)s. Fallbacks can't be chained.")
            % params
        )
    if effect(row) == Effect.AT_MOST_ONCE:
        return NOT_REPEATABLE % params
    if _harm_rank(fallback) > _harm_rank(row):
        return (
            _("%(other)s has more side effects than %(name)s, so it can't be its fallback.")
            % params
        )
    return FALLBACK_ASKS % params if requires_approval(fallback) else None


def missing_fallback(row: ToolRegistration) -> str:
    """Return which agents never use the saved fallback because they don't have it."""
    fallback = row.fallback
    if not row.pk or fallback is None:
        return ""
    agents = Agent.objects.filter(links__tool=row).exclude(links__tool=fallback)
    names = sorted(agents.values_list("name", flat=True).distinct())
    if not names:
        return ""
    sentence = _("Agents without %(other)s never use it: %(agents)s.")
    return sentence % {"other": fallback.name, "agents": ", ".join(names)}


NOT_REPEATABLE = _(
    "%(name)s is irreversible, so it can't have a fallback: a failed call may already "
    "have taken effect."
)
ONLY_READ = _(
    "Only read-only calls can be cached. Turn the cache off, or set “Side effects” to "
    "read-only if repeating a call changes nothing."
)
FALLBACK_ASKS = _("%(other)s requires approval, so it can't be a fallback.")


def _harm_rank(row: ToolRegistration) -> int:
    return EFFECTS_BY_HARM.index(effect(row) or Effect.AT_MOST_ONCE)


class ToolForm(forms.ModelForm):
    """Rejects what the engine couldn't use, with a message."""

    keeps_some_headers = False  # only some were entered

    class Meta:
        widgets = {
            "description": forms.Textarea(attrs={"class": "vLargeTextField", "rows": 3}),
            "endpoint": forms.TextInput(attrs={"class": "vLargeTextField"}),
            "rerank_model": ModelInput(
                attrs={"class": "vLargeTextField", "autocomplete": "off"}
            ),
        }
        help_texts = {
            "endpoint": _(
                "https://…, with {name} for arguments in the path. Other arguments "
                "go into the query (GET) or the JSON body. Allow private network "
                "URLs in ASHIATO_EGRESS_ALLOW."
            ),
            "definition": help_with_example(
                _(
                    "OpenAI-style tool definition, or just its function or parameters. "
                    "Leave empty for no arguments."
                ),
                EXAMPLE_DEFINITION,
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            self.instance.source = Source.HTTP
        if "method" in self.fields:
            self.fields["endpoint"].required = True
            cast(forms.ChoiceField, self.fields["method"]).choices = [
                (method, method) for method in ToolRegistration.Method
            ]
        if "fallback" in self.fields:
            field = cast(forms.ModelChoiceField, self.fields["fallback"])
            field.queryset = ToolRegistration.objects.exclude(pk=self.instance.pk)
            for link in ("add", "change", "delete", "view"):
                setattr(field.widget, f"can_{link}_related", False)
        if "max_retries" in self.fields:
            default = f"{configured.TOOL_RETRIES.value:g}"
            self.fields["max_retries"].widget.attrs["placeholder"] = default
        if "result_cache_seconds" in self.fields:
            self.fields["result_cache_seconds"].required = False
        # Help that depends on the tool.
        help_texts: dict[str, LazyText] = {
            "fallback": f"{FALLBACK_HELP} {missing_fallback(self.instance)}".strip()
        }
        tool = load_tool(self.instance) if self.instance.pk else None
        if tool:
            help_texts |= {
                "effect": f"{_tool_claim(Effect(tool.effect))} {RETRY_HELP}",
                "approval": _tool_claim(default_approval(tool)),
            }
        if self.instance.source == Source.MCP and tool:
            claim = SERVER_CLAIM % {"what": Effect(tool.effect).label}
            help_texts["effect"] = f"{claim} {RETRY_HELP}"
        if self.instance.source == Source.HTTP:
            help_texts["description"] = DESCRIPTION_HELP
            help_texts["effect"] = f"{EFFECT_HELP} {RETRY_HELP}"
        for name in help_texts.keys() & self.fields.keys():
            self.fields[name].help_text = help_texts[name]

    def clean_rerank_model(self) -> str:
        """Reject a model that can't be used."""
        name = str(self.cleaned_data["rerank_model"]).strip()
        if name not in {"", OFF} and (error := model_setups.configuration_error(name)):
            raise ValidationError(translate(str(error)))
        return name

    def clean_result_cache_seconds(self) -> int:
        seconds: int | None = self.cleaned_data["result_cache_seconds"]
        return seconds or int(self.instance.result_cache_seconds)

    def clean_name(self) -> str:
        """Reject a name that collides with a handoff of an agent that has it."""
        name: str = self.cleaned_data["name"]
        for agent in self.instance.agents.all() if self.instance.pk else ():
            if name in {sub_agent.handoff_tool_name for sub_agent in agent.handoffs.all()}:
                raise ValidationError(NAME_TAKEN, params={"agent": agent.name})
        return name

    def clean_endpoint(self) -> str:
        endpoint = self.cleaned_data["endpoint"]
        if not endpoint.lower().startswith(("http://", "https://")):
            raise ValidationError(_("Must start with https:// or http://."))
        return endpoint

    def clean_definition(self) -> dict[str, Any] | None:
        definition = self.cleaned_data["definition"]
        if definition is None:
            return None
        if definition.get("type") == "object":
            return {"parameters": definition}
        if definition.get("type", "function") != "function" or "properties" in definition:
            raise ValidationError(OBJECT_REQUIRED)
        function = definition.get("function", definition)
        if not isinstance(function, dict):
            raise ValidationError(_("The value of “function” must be a JSON object: {…}."))
        if unknown := function.keys() - DEFINITION_KEYS:
            raise ValidationError(UNKNOWN_KEYS, params={"names": ", ".join(sorted(unknown))})
        return definition

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        row = construct_instance(self, copy(self.instance))
        if row.source == Source.HTTP:
            is_kept = self.keeps_some_headers or cleaned.get("headers") in (None, "")
            if self.instance.headers and is_kept and "endpoint" in self.changed_data:
                # Saved headers would be sent to another endpoint.
                self.add_error("headers", REENTER_HEADERS)
            elif wrong := invalid_part(row):
                self.add_error(*wrong)
            elif not (row.description or tool_factory.http_tool(row).description):
                self.add_error("description", DESCRIPTION_REQUIRED)
        if row.fallback and not self.errors and (why := fallback_problem(row, row.fallback)):
            self.add_error("fallback", why)
        if row.result_cache and not self.errors and effect(row) != Effect.READ:
            self.add_error("result_cache", ONLY_READ)
        return cleaned


class HttpToolForm(ToolForm):
    """The form of an HTTP tool as people enter it: a row for each header."""

    headers = SecretPairsField(
        label=_("Headers"),
        add_label=_("Add header"),
        help_text=_("Values are stored encrypted and never displayed again."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(SecretPairsField, self.fields["headers"]).show_saved(self.instance.headers)

    def clean_headers(self) -> Any:
        headers, self.keeps_some_headers = merge_pairs(
            self.cleaned_data["headers"], self.instance.headers
        )
        return headers


class WebSearchForm(ToolForm):
    """The form of the web search: its service with an address or a key."""

    api_key = forms.CharField(
        label=_("API key"),
        required=False,
        strip=True,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    class Meta(ToolForm.Meta):
        labels = {"endpoint": _("URL"), "top_k": _("pages per search")}
        help_texts = {
            "endpoint": _(
                "URL of your SearXNG server, which must allow the format json. Leave empty for "
                "other services. Allow private network URLs in ASHIATO_EGRESS_ALLOW."
            ),
            "top_k": _("How many pages a search returns, at most 20."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.saved_key = self.instance.headers
        self.fields["api_key"].help_text = KEY_SAVED if self.saved_key else KEY_HELP

    def clean_endpoint(self) -> str:
        endpoint: str = self.cleaned_data["endpoint"].strip()
        if endpoint:
            try:
                validate_url(endpoint)
            except EgressRefused as error:
                raise ValidationError(translate(str(error))) from error
        return endpoint

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        service = cleaned.get("search_service")
        if service == SearchService.SEARXNG and not cleaned.get("endpoint"):
            self.add_error("endpoint", _("Enter the URL of your SearXNG server."))
        needs_key = service in (SearchService.BRAVE, SearchService.TAVILY)
        if needs_key and not (cleaned.get("api_key") or self._keeps_key):
            self.add_error("api_key", _("Enter the API key of this service."))
        return cleaned

    @property
    def _keeps_key(self) -> bool:
        """Whether the saved key still applies: it is never sent to another service."""
        is_moved = {"search_service", "endpoint"} & {*self.changed_data}
        return bool(self.saved_key) and not is_moved

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        key = self.cleaned_data.get("api_key")
        if key:
            self.instance.headers = {"key": key}
        elif not self._keeps_key:
            self.instance.headers = {}


def _tool_claim(choice: ToolRegistration.Effect | ToolRegistration.ApprovalMode) -> str:
    return _("Tool default: %(what)s.") % {"what": choice.label}


SERVER_CLAIM = _("Declared by the server: %(what)s. Not verified.")
FALLBACK_HELP = _(
    "Used while this tool is failing. The agent needs both tools, and both must take "
    "the same arguments."
)
DESCRIPTION_REQUIRED = _("Enter a description. The model uses it to choose tools.")
DESCRIPTION_HELP = _(
    "Tool description for the model. Leave empty to use the one in the definition."
)
EFFECT_HELP = _("Tool default: GET is read-only, other methods are irreversible.")
KEY_HELP = _("Stored encrypted and never displayed again.")
KEY_SAVED = _("A key is saved. Leave empty to keep it.")
RETRY_HELP = _("A failed call that makes changes is retried, an irreversible one never is.")
REENTER_HEADERS = _(
    "These headers were set for a different endpoint. Enter their values again, or remove them."
)
NAME_TAKEN = _("%(agent)s uses this name to hand off to another agent. Choose another name.")
OBJECT_REQUIRED = _('Parameters must be a JSON Schema that starts with {"type": "object"}.')
UNKNOWN_KEYS = _(
    "Unknown fields: %(names)s. A definition can have name, description and parameters."
)
