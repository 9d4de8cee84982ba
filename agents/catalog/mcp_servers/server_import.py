"""Creates MCP servers from the configuration of another program.

It is read first (`read_drafts`), so that a person can review each server, enter the missing
values and change names. A server with problems doesn't stop the others.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import McpServer
from agents.models.types import AnyUser
from agents.tools.mcp.config_import import ImportedServer, read_servers
from agents.tools.mcp.configuration.config import ServerConfig

from . import sandbox_policy, validate

PLACEHOLDER_VALUE = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChoices:
    """What a person chose for one server: its name, and values by name."""

    name: str = ""
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDraft:
    """A server that can be imported, unless it has problems."""

    read: ImportedServer
    config: ServerConfig | None = None
    problems: tuple[str, ...] = ()
    still_missing: tuple[str, ...] = ()

    @property
    def is_enabled(self) -> bool:
        """Whether it can be used at once; a server without its values can't."""
        return self.read.is_enabled and not self.still_missing

    @property
    def is_ready(self) -> bool:
        return self.config is not None and not self.problems


def read_drafts(
    text: str, user: AnyUser, chosen: Mapping[int, DraftChoices] | None = None
) -> list[ServerDraft]:
    """Return a draft for each server; raise InvalidServerConfig if the text has none."""
    used_names: set[str] = set()
    drafts: list[ServerDraft] = []
    for number, server in enumerate(read_servers(text)):
        if server.config is None:
            drafts.append(ServerDraft(read=server, problems=server.problems))
            continue
        choices = (chosen or {}).get(number, DraftChoices())
        values = {name: text for name, text in choices.values.items() if text}
        config = server.fill_in(values)
        config = replace(config, name=choices.name or config.name)
        missing = tuple(value.name for value in server.missing if not values.get(value.name))
        problems = dict.fromkeys(_problems(server, config, missing, user, used_names))
        if not problems:
            used_names.add(config.name)
        draft = ServerDraft(
            read=server, config=config, problems=tuple(problems), still_missing=missing
        )
        drafts.append(draft)
    return drafts


@transaction.atomic
def create_servers(drafts: Iterable[ServerDraft]) -> list[McpServer]:
    """Create the servers; the drafts must be ready."""
    return [
        McpServer.objects.create(
            name=config.name,
            transport=McpServer.Transport(config.transport),
            command=config.command,
            args=list(config.args),
            folders="\n".join(map(str, config.folders)),
            env=dict(config.env),
            url=config.url,
            headers=dict(config.headers),
            timeout=max(1, round(config.call_timeout)),
            connect_timeout=max(5, round(config.connect_timeout)),
            enabled=draft.is_enabled,
        )
        for draft in drafts
        if (config := draft.config)
    ]


def _problems(
    server: ImportedServer,
    config: ServerConfig,
    missing: tuple[str, ...],
    user: AnyUser,
    used_names: set[str],
) -> Iterator[str]:
    name = {"name": config.name}
    if config.name in used_names or McpServer.objects.filter(name=config.name).exists():
        yield _("A server named %(name)s already exists.") % name
    if config.transport not in McpServer.Transport.values:
        yield _("%(name)s uses an unsupported transport.") % name
    # What is still missing is checked when it is entered.
    dummies = dict.fromkeys(missing, PLACEHOLDER_VALUE)
    complete = replace(server.fill_in(dummies), name=config.name) if missing else config
    unknown = {f for value in server.missing if value.name in missing for f in value.fields}
    for problem in validate(replace(complete, sandbox=sandbox_policy()), user):
        if problem.field not in unknown:
            yield str(problem)
