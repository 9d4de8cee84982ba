"""A server as it was read, with what was left out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..configuration.config import InvalidServerConfig, ServerConfig
from ..configuration.placeholders import MissingValue, fill_in

MAX_SERVERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedServer:
    """A server as it was read; without a config it has only problems."""

    label: str
    config: ServerConfig | None = None
    is_enabled: bool = True
    missing: tuple[MissingValue, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def fill_in(self, values: Mapping[str, str]) -> ServerConfig:
        """Return the server with the entered values; others stay as `${NAME}`."""
        if self.config is None:
            raise InvalidServerConfig(*self.problems)
        config = self.config
        return replace(
            config,
            command=fill_in(config.command, values),
            args=tuple(fill_in(arg, values) for arg in config.args),
            env={name: fill_in(text, values) for name, text in config.env.items()},
            url=fill_in(config.url, values),
            headers={name: fill_in(text, values) for name, text in config.headers.items()},
        )
