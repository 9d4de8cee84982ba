"""The configuration of an MCP server, checked before anything is started.

It is read from rows or from the `mcpServers` JSON of other programs: Claude Desktop, VS Code,
LibreChat and so on. Nothing is filled in from this process's environment, whose secrets aren't
meant for a server.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from agents.engine.errors import ToolError

Transport = Literal["stdio", "http", "sse"]
SandboxLevel = Literal["bubblewrap", "landlock", "user", "container", "none"]
SandboxMode = Literal["auto", "require", "off"]

MAX_CONFIG_CHARS = 1_000_000
MAX_SERVERS = 100
MAX_NAME_CHARS = 40

SERVER_NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs"}
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.IGNORECASE)
MIN_SECRET_CHARS = 8

TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
RESERVED_HEADERS = {
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept",
}
# Fields of other programs without a meaning here.
IGNORED_FIELDS = {
    *("alwaysAllow", "autoApprove", "description", "icon", "iconPath", "id", "name", "note"),
    *("chatMenu", "gallery", "serverInstructions", "source", "stderr", "title", "version"),
}
FIELD_TYPES: dict[str, str] = {
    "command": "text",
    "url": "text",
    "httpUrl": "text",
    "serverUrl": "text",
    "type": "text",
    "transport": "text",
    "cwd": "text",
    "args": "texts",
    "folders": "texts",
    "env": "named_texts",
    "headers": "named_texts",
    "timeout": "number",
    "initTimeout": "number",
    "disabled": "flag",
    "enabled": "flag",
}
URL_FIELDS = ("url", "httpUrl", "serverUrl")


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


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that an administrator allows a server to use."""

    path: str
    is_writable: bool = False

    def __str__(self) -> str:
        return f"{self.path}:rw" if self.is_writable else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """A configured server. `home` is its persistent folder; empty means none."""

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    folders: tuple[Folder, ...] = ()
    home: str = ""
    sandbox: Sandbox = Sandbox()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout: float = 30.0
    call_timeout: float = 30.0

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.command, *self.args)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Possible secrets, to mask in error messages."""
        return (*self.env.values(), *self.headers.values())

    @property
    def credentials(self) -> tuple[str, ...]:
        """Certain secrets, by name, to mask in results too."""
        keys = [value for name, value in self.env.items() if SECRET_NAME.search(name)]
        words = [word for value in (*keys, *self.headers.values()) for word in value.split()]
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


ConfigCheck = Callable[[ServerConfig], Iterable[ConfigProblem]]


def read_config(
    source: str | Mapping[str, Any], check: ConfigCheck = find_problems
) -> list[ServerConfig]:
    """Read the enabled servers; raise InvalidServerConfig with a sentence per problem."""
    entries = _server_entries(_decode(source) if isinstance(source, str) else source)
    wrong = [*_duplicate_names(entries)]
    configs = []
    for name, entry in entries.items():
        if bad := [*_shape_problems(name, entry)]:
            wrong += bad
        elif not (entry.get("disabled") or entry.get("enabled") is False):
            configs.append(_build_config(name, entry))
            wrong += map(str, check(configs[-1]))
    if wrong:
        raise InvalidServerConfig(*dict.fromkeys(wrong))
    return configs


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


def _decode(text: str) -> Mapping[str, Any]:
    if len(text) > MAX_CONFIG_CHARS:
        raise InvalidServerConfig(f"The text is longer than {MAX_CONFIG_CHARS:,} characters.")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise InvalidServerConfig(f"Invalid JSON: {reason}.") from None
    except RecursionError:
        raise InvalidServerConfig("This is nested too deeply.") from None
    if not isinstance(data, dict):
        raise InvalidServerConfig('Enter an object, e.g. {"mcpServers": {"name": {…}}}.')
    return data


def _server_entries(data: Mapping[str, Any]) -> dict[str, Any]:
    within = data.get("mcp")
    for holder, key in ((data, "mcpServers"), (within, "servers"), (data, "servers")):
        if isinstance(holder, Mapping) and key in holder:
            found = holder[key]
            break
    else:
        found = data
    if not isinstance(found, Mapping) or not found or {"command", *URL_FIELDS} & set(found):
        raise InvalidServerConfig('No server found. Enter {"mcpServers": {"name": {…}}}.')
    if len(found) > MAX_SERVERS:
        raise InvalidServerConfig(
            f"Too many servers: {len(found)}. The limit is {MAX_SERVERS}."
        )
    return dict(found)


def _duplicate_names(entries: Iterable[str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in entries:
        if (short := slugify(name)) and short in seen:
            yield f"{seen[short]!r} and {name!r} would both be named {short!r}. Rename one."
        seen.setdefault(short, name)


def _shape_problems(name: str, entry: Any) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield f"{name!r} must be an object with command or url, not {_type_name(entry)}."
        return
    for key, value in entry.items():
        if key in FIELD_TYPES:
            if wrong := _type_problem(FIELD_TYPES[key], value):
                yield f"Server {name!r}, {key}: {wrong}"
        elif key not in IGNORED_FIELDS:
            yield f"{name!r} has an unknown field: {key!r}."
    yield from _transport_problems(name, entry)


def _type_problem(expected: str, value: Any) -> str:
    match expected:
        case "text" if not isinstance(value, str):
            return f"Must be text, not {_type_name(value)}."
        case "texts" if not isinstance(value, list):
            return f"Must be a list of text values, not {_type_name(value)}."
        case "texts":
            return _text_problem(enumerate(value, 1))
        case "named_texts" if not isinstance(value, Mapping):
            return f"Must be an object with text values, not {_type_name(value)}."
        case "named_texts":
            return _text_problem(value.items())
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            return "" if fits else "Must be a number above 0."
        case "flag" if not isinstance(value, bool):
            return f"Must be true or false, not {_type_name(value)}."
    return ""


def _text_problem(items: Iterable[tuple[Any, Any]]) -> str:
    for which, item in items:
        if not isinstance(item, str):
            return f"Must contain only text, but {which!r} is {_type_name(item)}."
    return ""


def _type_name(value: Any) -> str:
    names = {str: "text", bool: "true or false", dict: "an object", list: "a list"}
    return "null" if value is None else names.get(type(value), "a number")


def _transport_problems(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    transport = entry.get("type", entry.get("transport"))
    addressed = any(entry.get(key) for key in URL_FIELDS)
    if bool(entry.get("command")) == addressed:
        yield (
            f"{name!r} has both command and url. Enter only one."
            if addressed
            else f"{name!r} has neither command nor url. Enter one."
        )
    elif isinstance(transport, str):
        meant = TRANSPORTS.get(transport.lower())
        if meant is None:
            yield f"The type of {name!r} must be stdio, http or sse, not {transport!r}."
        elif (meant == "stdio") == addressed:
            yield (
                f"The type of {name!r} is {transport!r}, "
                "which doesn't match its command or URL."
            )


def _build_config(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    url = next((entry[key] for key in URL_FIELDS if entry.get(key)), "").strip()
    limits: dict[str, Any] = {
        ours: _to_seconds(entry[theirs])
        for ours, theirs in (("call_timeout", "timeout"), ("connect_timeout", "initTimeout"))
        if theirs in entry
    }
    return ServerConfig(
        name=slugify(name),
        transport=_infer_transport(entry, url),
        command=entry.get("command", "").strip(),
        args=tuple(entry.get("args", ())),
        env=dict(entry.get("env", {})),
        cwd=entry.get("cwd", ""),
        folders=read_folders(entry.get("folders", ())),
        url=url,
        headers=dict(entry.get("headers", {})),
        **limits,
    )


def _infer_transport(entry: Mapping[str, Any], url: str) -> Transport:
    transport = entry.get("type", entry.get("transport"))
    if isinstance(transport, str):
        return TRANSPORTS[transport.lower()]
    if not url:
        return "stdio"
    return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"


def _to_seconds(limit: float) -> float:
    """Convert a timeout, which some programs write in seconds and most in milliseconds."""
    return min(limit / 1000 if limit >= 1000 else float(limit), 600.0)


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
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(sign.isspace() or not sign.isprintable() for sign in config.url):
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
