"""The configuration of an MCP server, checked before anything is started.

It comes from a row, or from the configuration of another program (`config_import`). Nothing is
filled in from this process's environment, whose secrets aren't meant for a server; a program
inherits only how to reach the network (`variables`).
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import joined
from agents.tools.sandbox import supervisor

from ..sign_in import SignIn
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
    message = _("This isn't a valid MCP server configuration.")

    def __init__(self, *sentences: str) -> None:
        self.sentences = sentences
        super().__init__(joined("\n", sentences))


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

    def in_bytes(self) -> dict[str, int]:
        """Return the limits in bytes and seconds, for the supervisor."""
        limits = {
            "memory": self.memory_mb and self.memory_mb * 2**20,
            "file": self.file_mb and self.file_mb * 2**20,
            "cpu": self.cpu_seconds,
            "processes": self.processes,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}

    def exceeded(self, status: int | None) -> str:
        """Return which limit ended the program, by its exit status; empty if none did."""
        match status:
            case supervisor.EXIT_MEMORY if self.memory_mb:
                return _(
                    "It used more than %(size)s MB of memory, so it was stopped.",
                    size=f"{self.memory_mb:,}",
                )
            case supervisor.EXIT_CPU if self.cpu_seconds:
                return _(
                    "It used more than %(seconds)s s of CPU time in 5 minutes, so it "
                    "was stopped.",
                    seconds=self.cpu_seconds,
                )
            case supervisor.EXIT_PROCESSES if self.processes:
                return _(
                    "It started more than %(count)s processes, so it was stopped.",
                    count=f"{self.processes:,}",
                )
            case supervisor.EXIT_FILE if self.file_mb:
                return _(
                    "It wrote a file larger than %(size)s MB, so it was stopped.",
                    size=f"{self.file_mb:,}",
                )
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
    sign_in: SignIn | None = field(default=None, repr=False)

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
        values = (*secret_values, *self.headers.values())
        tokens = [token for value in values for token in value.split()]
        return tuple(token for token in tokens if len(token) >= MIN_SECRET_CHARS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProblem:
    """A problem with a field: as a message beside it, and as one that names the server."""

    field: str
    sentence: str
    full_sentence: str

    def __str__(self) -> str:
        return self.full_sentence


def find_problems(config: ServerConfig) -> list[ConfigProblem]:
    """Return the problems; empty if the server can be tried."""
    problems: list[ConfigProblem] = []
    if not SERVER_NAME.fullmatch(config.name) or len(config.name) > MAX_NAME_CHARS:
        sentence = _(
            "Use a–z and 0–9, with single - or _ in between (max %(n)s characters).",
            n=MAX_NAME_CHARS,
        )
        problems.append(_problem(config, "name", sentence))
    if config.transport == "stdio":
        problems += _program_problems(config)
    else:
        problems += _http_problems(config)
    texts = [
        ("command", _("The command"), config.command),
        ("url", _("The URL"), config.url),
        ("cwd", "cwd", config.cwd),
    ]
    texts += [("args", _("Item %(n)s", n=n), text) for n, text in enumerate(config.args, 1)]
    texts += [("env", repr(key), text) for key, text in config.env.items()]
    texts += [("headers", repr(key), text) for key, text in config.headers.items()]
    for field_name, label, text in texts:
        if placeholder := PLACEHOLDER.search(text):
            sentence = _(
                "%(what)s contains a placeholder, %(blank)s. Enter the actual value.",
                what=label,
                blank=repr(placeholder[0]),
            )
            problems.append(_problem(config, field_name, sentence))
    return problems


def slugify(name: str) -> str:
    """Return the prefix of the server's tools, without repeated separators."""
    plain = unicodedata.normalize("NFKC", name).lower()
    return re.sub(r"[_-]{2,}", "_", re.sub(r"[^a-z0-9_-]+", "-", plain)).strip("_-")


def read_folders(lines: Iterable[str]) -> tuple[Folder, ...]:
    """Read folders: a path, with `:rw` if it is writable."""
    stripped = (line.strip() for line in lines)
    return tuple(
        Folder(line.removesuffix(":rw").removesuffix(":ro"), line.endswith(":rw"))
        for line in stripped
        if line
    )


def _problem(config: ServerConfig, field_name: str, sentence: str) -> ConfigProblem:
    return ConfigProblem(
        field=field_name,
        sentence=sentence,
        full_sentence=_(
            "Server %(name)s, %(field)s: %(sentence)s",
            name=repr(config.name),
            field=field_name,
            sentence=sentence,
        ),
    )


def _program_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    if not config.command:
        yield _problem(config, "command", _("Enter a command."))
    for number, text in enumerate(config.argv):
        if any(unicodedata.category(char) in INVISIBLE_CATEGORIES for char in text):
            if number:
                invisible = _("Item %(n)s contains an invisible character.", n=number)
                yield _problem(config, "args", invisible)
            else:
                invisible = _("The command contains an invisible character.")
                yield _problem(config, "command", invisible)
    for key, value in config.env.items():
        if not VARIABLE_NAME.fullmatch(key):
            yield _problem(
                config, "env", _("%(name)s isn't a valid variable name.", name=repr(key))
            )
        elif "\0" in value:
            yield _problem(
                config,
                "env",
                _("The value of %(name)s contains a NUL character.", name=repr(key)),
            )


def _http_problems(config: ServerConfig) -> Iterator[ConfigProblem]:
    try:
        url = urlsplit(config.url)
        is_valid = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(char.isspace() or not char.isprintable() for char in config.url):
        yield _problem(config, "url", _("Enter a full URL, e.g. https://host/mcp."))
    elif url.username or url.password:
        yield _problem(config, "url", _("The URL contains a password. Move it to the headers."))
    for key, value in config.headers.items():
        if not HEADER_NAME.fullmatch(key):
            yield _problem(
                config, "headers", _("%(name)s isn't a valid header name.", name=repr(key))
            )
        elif key.lower() in RESERVED_HEADERS or key.lower().startswith("mcp-"):
            yield _problem(
                config,
                "headers",
                _("The header %(name)s is set automatically.", name=repr(key)),
            )
        elif not value.isascii() or not value.isprintable():
            ascii_only = _(
                "The value of %(name)s can only contain printable ASCII characters.",
                name=repr(key),
            )
            yield _problem(config, "headers", ascii_only)
