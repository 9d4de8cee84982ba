"""The prompt library as prompts, with their variables as arguments."""

from collections.abc import Mapping

import mcp_types as wire
from django.utils.translation import gettext as _

from agents.models import ApiKey
from agents.web.api_errors import ApiError
from agents.web.presentation.formats.formatting import one_line
from chat.models import Prompt
from chat.prompts import prompt_text

from .context import McpCall


def list_prompts(call: McpCall) -> list[wire.Prompt]:
    """Return the prompts that the user can use."""
    return [_prompt(name, row, call) for name, row in _by_name(call).items()]


def fill(call: McpCall, name: str, arguments: Mapping[str, str]) -> wire.GetPromptResult:
    """Return a prompt's text with its variables filled in."""
    row = _by_name(call).get(name)
    if row is None:
        raise ApiError(404, _("There’s no prompt named %(name)s.") % {"name": name[:40]})
    parsed = prompt_text.parse(row.text, prompt_text.system_values(call.caller.user))
    values = [arguments.get(v.name) or v.default for v in parsed.variables]
    missing = [v.name for v, value in zip(parsed.variables, values, strict=True) if not value]
    if missing:
        raise ApiError(422, _("Fill in: %(names)s.") % {"names": ", ".join(missing)})
    text = "".join(values[p] if isinstance(p, int) else p for p in parsed.pieces)
    content = wire.TextContent(text=text)
    message = wire.PromptMessage(role="user", content=content)
    return wire.GetPromptResult(description=row.title, messages=[message])


def _by_name(call: McpCall) -> dict[str, Prompt]:
    """Return the prompts by names that are unique: others' may be named like the user's."""
    call.caller.require(ApiKey.Scope.READ)
    user = call.caller.user
    rows = sorted(
        Prompt.objects.for_user(user), key=lambda row: (row.user_id != user.pk, row.pk)
    )
    named: dict[str, Prompt] = {}
    for row in rows:
        named.setdefault(row.name if row.name not in named else f"{row.name}-{row.pk}", row)
    return named


def _prompt(name: str, row: Prompt, call: McpCall) -> wire.Prompt:
    variables = prompt_text.parse(
        row.text, prompt_text.system_values(call.caller.user)
    ).variables
    return wire.Prompt(
        name=name,
        title=row.title,
        description=one_line(row.text),
        arguments=[
            wire.PromptArgument(
                name=variable.name,
                description=" | ".join(variable.options) or variable.default or None,
                required=not variable.default,
            )
            for variable in variables
        ],
    )
