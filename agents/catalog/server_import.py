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
from agents.tools.mcp.config import ServerConfig
from agents.tools.mcp.config_import import ImportedServer, read_servers

from .mcp_servers import sandbox_policy, validate

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
    taken: set[str] = set()
    drafts = []
    for number, server in enumerate(read_servers(text)):
        choices = (chosen or {}).get(number, DraftChoices())
        drafts.append(_draft(server, choices, user, taken))
        if drafts[-1].is_ready and (config := drafts[-1].config):
            taken.add(config.name)
    return drafts


@transaction.atomic
def create_servers(drafts: Iterable[ServerDraft]) -> list[McpServer]:
    """Create the servers; the drafts must be ready."""
    return [_create_server(draft, config) for draft in drafts if (config := draft.config)]


def _draft(
    server: ImportedServer, choices: DraftChoices, user: AnyUser, taken: set[str]
) -> ServerDraft:
    if server.config is None:
        return ServerDraft(read=server, problems=server.problems)
    values = {name: text for name, text in choices.values.items() if text}
    config = server.fill_in(values)
    config = replace(config, name=choices.name or config.name)
    missing = tuple(value.name for value in server.missing if not values.get(value.name))
    return ServerDraft(
        read=server,
        config=config,
        problems=tuple(dict.fromkeys(_problems(server, config, missing, user, taken))),
        still_missing=missing,
    )


def _problems(
    server: ImportedServer,
    config: ServerConfig,
    missing: tuple[str, ...],
    user: AnyUser,
    taken: set[str],
) -> Iterator[str]:
    name = {"name": config.name}
    if config.name in taken or McpServer.objects.filter(name=config.name).exists():
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


def _create_server(draft: ServerDraft, config: ServerConfig) -> McpServer:
    return McpServer.objects.create(
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
