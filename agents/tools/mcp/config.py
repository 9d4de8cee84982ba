"""The configuration of an MCP server, checked before anything is started.

It comes from a row, or from the configuration of another program (`config_import`). Nothing is
filled in from this process's environment, whose secrets aren't meant for a server; a program
inherits only how to reach the network (`variables`).
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from agents.engine.errors import ToolError

from . import supervisor
from .variables import inherited_credentials

Transport = Literal["stdio", "http", "sse"]
SandboxLevel = Literal["bubblewrap", "landlock", "user", "container", "none"]
SandboxMode = Literal["auto", "require", "off"]

MAX_NAME_CHARS = 40

SERVER_NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs"}
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.IGNORECASE)
MIN_SECRET_CHARS = 8

RESERVED_HEADERS = {
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept",
}


class InvalidServerConfig(ToolError):
    """This isn't a valid MCP server configuration."""

    def __init__(self, *sentences: str) -> None:
        self.sentences = sentences
        super().__init__("\n".join(sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How programs are isolated: the levels to try, and the paths to hide."""

    mode: SandboxMode = "auto"
    levels: tuple[SandboxLevel, ...] = ("bubblewrap", "landlock", "user")
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """What a program and everything it starts may use together; None means no limit."""

    memory_mb: int | None = None
    cpu_seconds: int | None = None  # within five minutes
    file_mb: int | None = None  # of one file
    processes: int | None = None

    def to_json(self) -> str:
        """Return the limits in bytes and seconds, for the supervisor."""
        sizes = {"memory": self.memory_mb, "file": self.file_mb}
        found = {name: most * 2**20 for name, most in sizes.items() if most is not None}
        counts = {"cpu": self.cpu_seconds, "processes": self.processes}
        return json.dumps(found | {n: most for n, most in counts.items() if most is not None})

    def exceeded(self, status: int | None) -> str:
        """Return which limit ended the program, by its exit status; empty if none did."""
        match status:
            case supervisor.EXIT_MEMORY if self.memory_mb:
                return f"It used more than {self.memory_mb:,} MB of memory, so it was stopped."
            case supervisor.EXIT_CPU if self.cpu_seconds:
                most = self.cpu_seconds
                return (
                    f"It used more than {most} s of CPU time in 5 minutes, so it was stopped."
                )
            case supervisor.EXIT_PROCESSES if self.processes:
                return f"It started more than {self.processes:,} processes, so it was stopped."
            case supervisor.EXIT_FILE if self.file_mb:
                return f"It wrote a file larger than {self.file_mb:,} MB, so it was stopped."
        return ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that an administrator allows a server to use."""

    path: str
    is_writable: bool = False

    def __str__(self) -> str:
        return f"{self.path}:rw" if self.is_writable else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """A configured server. `home` is its persistent folder; empty means none.

    A new `revision` starts it again, although nothing else has changed.
    """

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    folders: tuple[Folder, ...] = ()
    home: str = ""
    sandbox: Sandbox = Sandbox()
    limits: ChildLimits = ChildLimits()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout: float = 60.0
    call_timeout: float = 30.0
    revision: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.command, *self.args)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Possible secrets, to mask in error messages."""
        inherited = inherited_credentials() if self.transport == "stdio" else []
        return (*self.env.values(), *self.headers.values(), *inherited)

    @property
    def credentials(self) -> tuple[str, ...]:
        """Certain secrets, by name, to mask in results too."""
        secret_values = [value for name, value in self.env.items() if SECRET_NAME.search(name)]
        secret_values += inherited_credentials() if self.transport == "stdio" else []
        words = [
            word for value in (*secret_values, *self.headers.values()) for word in value.split()
        ]
        return tuple(word for word in words if len(word) >= MIN_SECRET_CHARS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProblem:
    """A problem with a field: as a message beside it, and as one that names the server."""

    field: str
    beside: str
    whole: str

    def __str__(self) -> str:
        return self.whole


def find_problems(config: ServerConfig) -> list[ConfigProblem]:
    """Return the problems; empty if the server can be tried."""
    name = _name_problems(config)
    if config.transport == "stdio":
        return [*name, *_program_problems(config), *_placeholder_problems(config)]
    return [
        *name,
        *_url_problems(config),
        *_header_problems(config),
        *_placeholder_problems(config),
    ]


def slugify(name: str) -> str:
    """Return the prefix of the server's tools, without repeated separators."""
    plain = unicodedata.normalize("NFKC", name).lower()
    return re.sub(r"[_-]{2,}", "_", re.sub(r"[^a-z0-9_-]+", "-", plain)).strip("_-")


def read_folders(lines: Iterable[str]) -> tuple[Folder, ...]:
    """Read folders: a path, with `:rw` if it is writable."""
    written = [line.strip() for line in lines if line.strip()]
    return tuple(
        Folder(line.removesuffix(":rw").removesuffix(":ro"), line.endswith(":rw"))
        for line in written
    )


def _problem(config: ServerConfig, where: str, sentence: str) -> ConfigProblem:
    return ConfigProblem(
        field=where, beside=sentence, whole=f"Server {config.name!r}, {where}: {sentence}"
    )


def _name_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    if not SERVER_NAME.fullmatch(config.name) or len(config.name) > MAX_NAME_CHARS:
        most = MAX_NAME_CHARS
        form = f"Use a–z and 0–9, with single - or _ in between (max {most} characters)."
        yield _problem(config, "name", form)


def _program_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    if not config.command:
        yield _problem(config, "command", "Enter a command.")
    for number, text in enumerate(config.argv):
        if any(unicodedata.category(sign) in INVISIBLE_CATEGORIES for sign in text):
            if number:
                invisible = f"Item {number} contains an invisible character."
                yield _problem(config, "args", invisible)
            else:
                invisible = "The command contains an invisible character."
                yield _problem(config, "command", invisible)
    for key, value in config.env.items():
        if not VARIABLE_NAME.fullmatch(key):
            yield _problem(config, "env", f"{key!r} isn't a valid variable name.")
        elif "\0" in value:
            yield _problem(config, "env", f"The value of {key!r} contains a NUL character.")


def _url_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    try:
        parts = urlsplit(config.url)
        is_valid = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        is_valid = False
    if not is_valid or any(sign.isspace() or not sign.isprintable() for sign in config.url):
        yield _problem(config, "url", "Enter a full URL, e.g. https://host/mcp.")
    elif parts.username or parts.password:
        yield _problem(config, "url", "The URL contains a password. Move it to the headers.")


def _header_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    for key, value in config.headers.items():
        if not HEADER_NAME.fullmatch(key):
            yield _problem(config, "headers", f"{key!r} isn't a valid header name.")
        elif key.lower() in RESERVED_HEADERS or key.lower().startswith("mcp-"):
            yield _problem(config, "headers", f"The header {key!r} is set automatically.")
        elif not value.isascii() or not value.isprintable():
            ascii_only = f"The value of {key!r} can only contain printable ASCII characters."
            yield _problem(config, "headers", ascii_only)


def _placeholder_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    texts = [
        ("command", "The command", config.command),
        ("url", "The URL", config.url),
        ("cwd", "cwd", config.cwd),
    ]
    texts += [("args", f"Item {n}", text) for n, text in enumerate(config.args, 1)]
    texts += [("env", repr(key), text) for key, text in config.env.items()]
    texts += [("headers", repr(key), text) for key, text in config.headers.items()]
    for where, subject, text in texts:
        if found := PLACEHOLDER.search(text):
            placeholder = found[0]
            yield _problem(
                config,
                where,
                f"{subject} contains a placeholder, {placeholder!r}. Enter the actual value.",
            )
