"""Starting a workflow: `/workflow name key=value`, or a form."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents import runs
from agents.access.visitors import is_visitor
from agents.db.sanitize import REMOVED_ESCAPES
from agents.db.sentences import translate
from agents.engine.plans import MAX_DEPTH, PlanDefinition, read_definition
from agents.models import Run, Workflow, WorkflowVersion

from . import resources

COMMAND_NAME = "/workflow"
COMMAND_PATTERN = re.compile(rf"{COMMAND_NAME}(?!\S)(.*)", re.DOTALL)
FIELD_PREFIX = "parameter-"
WORD_PATTERN = re.compile(
    r"""([^\s="'「]+)=|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|「([^」]*)」|(\S+)"""
)
TRUE_WORDS = {"true", "yes", "on", "1", "はい"}
FALSE_WORDS = {"false", "no", "off", "0", "いいえ", ""}


class WorkflowNotStarted(Exception):
    """Raised when a workflow can't start; the user sees the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """A workflow version and its start parameters."""

    version: WorkflowVersion
    parameters: Mapping[str, Any]

    @property
    def query(self) -> str:
        """The command that starts it."""
        assignments = [
            f"{name}={_quote(format_value(v))}" for name, v in self.parameters.items()
        ]
        return " ".join([COMMAND_NAME, _quote(self.version.workflow.name), *assignments])


def parse_command(text: str, user: User) -> StartRequest | None:
    """Return what a message starts, if it is the command; raise WorkflowNotStarted."""
    command = COMMAND_PATTERN.match(text.strip())
    if command is None or is_visitor(user.pk):
        return None
    name, parameters = _parse_arguments(command[1])
    mine = Workflow.objects.for_user(user).filter(enabled=True)
    return build_request(find_workflow(name, mine), parameters, user)


def find_workflow(name: str, mine: QuerySet[Workflow]) -> Workflow:
    """Return the workflow with this name; raise WorkflowNotStarted."""
    workflow = mine.filter(name=name).first() or mine.filter(name__iexact=name).first()
    if workflow is not None:
        return workflow
    names = list(mine.values_list("name", flat=True))
    if not names:
        raise WorkflowNotStarted(_("There are no workflows you can start."))
    if not name:
        listed = ", ".join(names[:10])
        raise WorkflowNotStarted(
            _("Which workflow? Choose one of these: %(names)s.") % {"names": listed}
        )
    near = get_close_matches(name, names, n=1, cutoff=0.4) or names[:1]
    params = {"name": name[:60], "near": near[0]}
    raise WorkflowNotStarted(
        _("There's no workflow named %(name)s. Did you mean %(near)s?") % params
    )


def build_request(
    workflow: Workflow,
    parameters: Mapping[str, str],
    user: User | None = None,
    *,
    version: WorkflowVersion | None = None,
) -> StartRequest:
    """Return a request for this or the newest version; raise WorkflowNotStarted."""
    version = version or workflow.newest
    if version is None or not workflow.enabled:
        raise WorkflowNotStarted(_("%(name)s is disabled.") % {"name": workflow.name})
    definition = read_definition(version.text)
    problems = definition.problems or resources.available(user).find_missing(definition.plan)
    if problems:
        raise WorkflowNotStarted(translate(problems[0].message))
    return StartRequest(version=version, parameters=resolve_parameters(definition, parameters))


def resolve_parameters(definition: PlanDefinition, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return all parameters, with the types of their defaults; raise WorkflowNotStarted."""
    declared = definition.plan.parameters
    for name in texts.keys() - declared.keys():
        near = get_close_matches(name, declared, n=1)
        if not near:
            message = _("This workflow has no parameter %(name)s.") % {"name": name}
            raise WorkflowNotStarted(message)
        params = {"name": name, "near": near[0]}
        raise WorkflowNotStarted(
            _("This workflow has no parameter %(name)s. Did you mean %(near)s?") % params
        )
    resolved = dict(declared)
    for name, text in texts.items():
        try:
            resolved[name] = _convert_text(text, declared[name])
            _check_storable(resolved[name])
        except (ValueError, RecursionError):
            params = {"name": name, "text": text[:60]}
            raise WorkflowNotStarted(
                _("“%(text)s” isn't a valid value for %(name)s.") % params
            ) from None
    for name, value in resolved.items():
        if value is None:
            raise WorkflowNotStarted(_("%(name)s is required.") % {"name": name})
    return resolved


def form_parameters(form: Mapping[str, str]) -> dict[str, str]:
    """Return a form's parameters, as typed."""
    fields = [(key, text) for key, text in form.items() if key.startswith(FIELD_PREFIX)]
    return {key.removeprefix(FIELD_PREFIX): text.replace("\0", "") for key, text in fields}


def format_parameters(values: Mapping[str, Any]) -> dict[str, str]:
    """Return saved parameters as text; null ones are omitted."""
    return {name: format_value(value) for name, value in values.items() if value is not None}


def prepare_run(request: StartRequest, user: User | None, topic: str) -> Run:
    """Create the run, ready to be launched."""
    return runs.prepare(
        query=request.query,
        topic=topic,
        user=user,
        workflow=request.version,
        parameters=dict(request.parameters),
    )


def _parse_arguments(text: str) -> tuple[str, dict[str, str]]:
    """Return a name, possibly with spaces, and the parameters after it."""
    name: list[str] = []
    assignments: dict[str, list[str]] = {}
    values = name
    for match in WORD_PATTERN.finditer(text):
        key, *forms = match.groups()
        if key:
            values = assignments.setdefault(key, [])
        else:
            value = next(form for form in forms if form is not None)
            values.append(re.sub(r"\\(.)", r"\1", value))
    return " ".join(name), {key: " ".join(values) for key, values in assignments.items()}


def _convert_text(text: str, default: Any) -> Any:
    """Convert the text to the default's type."""
    if isinstance(default, bool):
        if text.lower() not in TRUE_WORDS | FALSE_WORDS:
            raise ValueError
        return text.lower() in TRUE_WORDS
    if isinstance(default, int):
        return int(text)
    if isinstance(default, float):
        return float(text)
    if isinstance(default, list | dict):
        value = json.loads(text)
        if not isinstance(value, type(default)):
            raise ValueError
        return value
    return text if text or default is not None else None


def _check_storable(value: Any) -> None:
    """Raise ValueError if a database can't store the value as JSON."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    if any(escape in text for escape in REMOVED_ESCAPES) or _is_too_deep(value, MAX_DEPTH):
        raise ValueError


def _is_too_deep(value: Any, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_too_deep(item, levels - 1) for item in inner)


def format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _quote(text: str) -> str:
    if text and not re.search(r"""[\s="'「」\\]""", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
