"""The tabs of the editor and the fields on each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

TOOL_PREFIX = "tool-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    key: str
    label: Any
    fields: tuple[str, ...] = ()


TABS = (
    Tab(
        key="prompt",
        label=_("Prompt"),
        fields=(
            "instructions",
            "name",
            "description",
            "icon",
            "example_questions",
            "enabled",
            "is_default",
        ),
    ),
    Tab(
        key="model",
        label=_("Model"),
        fields=(
            "model",
            "fallback_models",
            "allows_model_choice",
            "allows_parameter_choice",
            "dialect",
            "mode",
            "shows_plan",
            "max_replans",
            "merge",
            "output_schema",
            "reply_cache",
            "reply_cache_seconds",
        ),
    ),
    Tab(
        key="tools",
        label=_("Tools"),
        fields=(
            "auto_execute_tools",
            "given",
            "tool_selection",
            "allows_sampling",
            "collections",
            "retrieves_first",
        ),
    ),
    Tab(
        key="handoffs",
        label=_("Handoffs"),
        fields=("handoffs", "experts", "asker_approves_questions", "roles"),
    ),
    Tab(
        key="limits",
        label=_("Limits"),
        fields=(
            "max_steps",
            "max_seconds",
            "max_tool_calls_per_tool",
            "max_duplicate_tool_calls",
            "max_run_tokens",
            "max_cost",
            "max_raise",
            "max_input_tokens",
            "max_output_tokens",
            "max_history_turns",
            "max_history_tokens",
            "summarizes_history",
            "summary_threshold",
        ),
    ),
    Tab(
        key="safety",
        label=_("Safety & privacy"),
        fields=(
            "personal_data",
            "checks_figures",
            "after_untrusted",
            "accepts_custom_instructions",
            "uses_memory",
            "learns",
            "max_experience_tokens",
        ),
    ),
    Tab(key="access", label=_("Access"), fields=("groups",)),
    Tab(key="versions", label=_("Versions")),
)
COLUMNS = [name for tab in TABS for name in tab.fields if name != "given"]
TAB_OF_FIELD = {name: tab.key for tab in TABS for name in tab.fields}


def field_of(name: str) -> str:
    """Return the form's field of an input; all inputs of tools belong to one."""
    return "given" if name.startswith(TOOL_PREFIX) else name


def tab_of(name: str) -> str:
    return TAB_OF_FIELD.get(field_of(name), TABS[0].key)


def tabs_of(names: Iterable[str]) -> list[str]:
    """Return the tabs that have these inputs, in their order."""
    keys = {tab_of(name) for name in names}
    return [tab.key for tab in TABS if tab.key in keys]
