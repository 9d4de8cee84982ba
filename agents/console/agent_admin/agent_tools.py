"""The tools of an agent as a table: a switch per tool, with its settings in the same row."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from django import forms
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.catalog.tools import tool_factory
from agents.db.sentences import translate
from agents.models import Agent, AgentTool, ToolRegistration
from agents.models.catalog.agent_tools import TOOL_SETTINGS

from ..tool_admin.tool_settings import effect, load_tool, requires_approval, unavailable_reason

DEFAULT_RETRIES = 2  # of the engine's FallbackStrategy


class ToolRow(forms.ModelForm):
    """One tool: whether the agent has it, and its settings there."""

    is_given = forms.BooleanField(
        required=False, widget=forms.CheckboxInput(attrs={"class": "switch"})
    )

    class Meta:
        model = AgentTool
        fields = [*TOOL_SETTINGS]
        widgets = {
            "approval": forms.RadioSelect,
            "description": forms.Textarea(attrs={"rows": 2}),
        }

    def __init__(
        self,
        tool: ToolRegistration,
        data: Mapping[str, Any] | None = None,
        link: AgentTool | None = None,
    ) -> None:
        super().__init__(
            data,
            prefix=f"tool-{tool.pk}",
            instance=link or AgentTool(tool=tool),
            initial={"is_given": link is not None},
            use_required_attribute=False,
        )
        self.tool = tool

    def label_controls(self) -> None:
        """Label each control with its tool and its default value, for a page."""
        for name, field in self.fields.items():
            label = self.tool.name if name == "is_given" else f"{self.tool}: {field.label}"
            field.widget.attrs["aria-label"] = label
        tool_effect = effect(self.tool)
        default_approval = (
            AgentTool.ApprovalMode.ALWAYS
            if requires_approval(self.tool)
            else AgentTool.ApprovalMode.NEVER
        )
        _label_default(self.fields["approval"], default_approval.label)
        _label_default(self.fields["effect"], tool_effect.label if tool_effect else "—")
        if self.tool.name in tool_factory.BUILT_IN_TOOLS:
            _label_default(self.fields["sending"], AgentTool.Sending.ALWAYS.label)
        self.fields["timeout"].widget.attrs["placeholder"] = self.tool.timeout
        own = self.tool.max_retries
        retries = DEFAULT_RETRIES if own is None else own
        self.fields["retries"].widget.attrs["placeholder"] = retries
        self.fields["description"].widget.attrs["placeholder"] = self.about

    @property
    def is_on(self) -> bool:
        return bool(self["is_given"].value())

    @cached_property
    def about(self) -> str:
        """Its description for models; a built-in one in the reader's language."""
        own = getattr(load_tool(self.tool), "description", "") or ""
        return self.tool.description or translate(own)

    @property
    def state(self) -> str:
        """Why an agent couldn't use it now, if so."""
        if not self.tool.enabled:
            return _("disabled")
        if self.tool.is_gone:
            return _("removed from server")
        if self.tool.pending:
            return _("blocked (definition changed)")
        if unavailable_reason(self.tool):
            return _("unavailable")
        is_off = self.tool.server is not None and not self.tool.server.enabled
        return _("server disabled") if is_off else ""


def _label_default(field: forms.Field, default: Any) -> None:
    if isinstance(field, forms.ChoiceField):
        _empty, *choices = cast(Iterable[tuple[Any, Any]], field.choices)
        field.choices = [("", _("Default (%(what)s)") % {"what": default}), *choices]


def rows(
    links: Iterable[AgentTool] = (), data: Mapping[str, Any] | None = None
) -> list[ToolRow]:
    """Return rows for all tools, or those submitted; the agent's own come first."""
    links_by_tool = {link.tool.pk: link for link in links}
    tools = ToolRegistration.objects.select_related("server", "connection", "fallback")
    posted = {name.split("-")[1] for name in data or () if name.startswith("tool-")}
    if data is not None and not posted:
        return []
    selected = [tool for tool in tools if data is None or str(tool.pk) in posted]
    tool_rows = [ToolRow(tool, data, links_by_tool.get(tool.pk)) for tool in selected]
    return sorted(tool_rows, key=lambda row: not row.is_on)


class ToolTable(forms.Widget):
    """The inputs of all tools; the editor displays them."""

    use_fieldset = True
    _data: Any = None
    _rows: list[ToolRow]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[ToolRow]:
        """Return the rows of these inputs, built once: there may be hundreds of tools."""
        if data is not self._data:
            self._rows = rows(data=data)
            self._data = data
        return self._rows

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return False


class ToolsField(forms.Field):
    """A field whose value is an agent's tools, as unsaved rows."""

    widget = ToolTable

    def prepare_value(self, value: Any) -> list[ToolRow]:
        are_rows = bool(value) and isinstance(value[0], ToolRow)
        return value if are_rows else rows(value or ())

    def clean(self, value: list[ToolRow]) -> list[AgentTool]:
        chosen = [row for row in value if row.is_on]
        if wrong := [row.tool.name for row in chosen if not row.is_valid()]:
            raise forms.ValidationError(INVALID_SETTINGS, params={"names": ", ".join(wrong)})
        return [row.instance for row in chosen]

    def shown_of(self, agent: Agent) -> list[Any]:
        """Return the saved values, to detect concurrent changes."""
        return [(link.tool_id, *link.settings.values()) for link in agent.links.order_by("pk")]

    def has_changed(self, initial: Any, data: list[ToolRow] | None) -> bool:
        links = {link.tool.pk: link for link in initial or ()}
        selected_rows = [row for row in data or () if row.is_on]
        if {row.tool.pk for row in selected_rows} != links.keys():
            return True
        return any(
            ToolRow(r.tool, r.data, links[r.tool.pk]).has_changed() for r in selected_rows
        )


INVALID_SETTINGS = gettext_lazy("Check the settings of %(names)s.")
