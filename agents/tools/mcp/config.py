"""What an administrator says of an MCP server, checked before anything is started.

Read from rows or from the `mcpServers` JSON that other programs keep: Claude Desktop, VS Code,
LibreChat and their like. Nothing here is filled in from the environment of this process, whose
secrets are none of a server's business.
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
Level = Literal["bubblewrap", "landlock", "user", "container", "none"]
Mode = Literal["auto", "require", "off"]

MOST_CHARACTERS = 1_000_000
MOST_SERVERS = 100
LONGEST_NAME = 40

NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
UNSEEN = {"Cc", "Cf", "Cs"}
KEY = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.IGNORECASE)
SHORTEST_KEY = 8

TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
OURS = {"host", "connection", "content-length", "content-type", "transfer-encoding", "accept"}
# What other programs keep beside a server, and what means nothing here.
PASSED_OVER = {
    *("alwaysAllow", "autoApprove", "description", "icon", "iconPath", "id", "name", "note"),
    *("chatMenu", "gallery", "serverInstructions", "source", "stderr", "title", "version"),
}
FIELDS: dict[str, str] = {
    "command": "text",
    "url": "text",
    "httpUrl": "text",
    "serverUrl": "text",
    "type": "text",
    "transport": "text",
    "cwd": "text",
    "args": "texts",
    "folders": "texts",
    "env": "named texts",
    "headers": "named texts",
    "timeout": "number",
    "initTimeout": "number",
    "disabled": "flag",
    "enabled": "flag",
}
ADDRESSES = ("url", "httpUrl", "serverUrl")


class BadServerConfig(ToolError):
    """This is no configuration of MCP servers."""

    def __init__(self, *sentences: str) -> None:
        self.sentences = sentences
        super().__init__("\n".join(sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How programs are kept apart from the product: what is tried, and what they never see."""

    mode: Mode = "auto"
    levels: tuple[Level, ...] = ("bubblewrap", "landlock", "user")
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that an administrator opened to a server."""

    path: str
    is_writable: bool = False

    def __str__(self) -> str:
        return f"{self.path}:rw" if self.is_writable else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """A server as it was set up. `home` is the folder that it keeps; without, it keeps none."""

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
        """What may be one, for what is said of a failure."""
        return (*self.env.values(), *self.headers.values())

    @property
    def credentials(self) -> tuple[str, ...]:
        """What surely is one, by its name, and so must not be in an answer either."""
        keys = [value for name, value in self.env.items() if KEY.search(name)]
        words = [word for value in (*keys, *self.headers.values()) for word in value.split()]
        return tuple(word for word in words if len(word) >= SHORTEST_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Something wrong with a field: told beside it, and told where many servers are told of."""

    field: str
    beside: str
    whole: str

    def __str__(self) -> str:
        return self.whole


def mistakes(config: ServerConfig) -> list[Mistake]:
    """What is wrong with it; nothing where it can be tried."""
    name = _wrong_name(config)
    if config.transport == "stdio":
        return [*name, *_wrong_program(config), *_placeholders(config)]
    return [*name, *_wrong_address(config), *_wrong_headers(config), *_placeholders(config)]


Check = Callable[[ServerConfig], Iterable[Mistake]]


def read_config(source: str | Mapping[str, Any], check: Check = mistakes) -> list[ServerConfig]:
    """The servers that are switched on; raises BadServerConfig with a sentence a mistake."""
    entries = _entries(_decoded(source) if isinstance(source, str) else source)
    wrong = [*_same_names(entries)]
    configs = []
    for name, entry in entries.items():
        if bad := [*_wrong_shape(name, entry)]:
            wrong += bad
        elif not (entry.get("disabled") or entry.get("enabled") is False):
            configs.append(_config(name, entry))
            wrong += map(str, check(configs[-1]))
    if wrong:
        raise BadServerConfig(*dict.fromkeys(wrong))
    return configs


def slug(name: str) -> str:
    """A name as the tools of its server begin: no two separators together."""
    plain = unicodedata.normalize("NFKC", name).lower()
    return re.sub(r"[_-]{2,}", "_", re.sub(r"[^a-z0-9_-]+", "-", plain)).strip("_-")


def read_folders(lines: Iterable[str]) -> tuple[Folder, ...]:
    """Folders as they are written: a path, and `:rw` behind one that may be changed."""
    written = [line.strip() for line in lines if line.strip()]
    return tuple(
        Folder(line.removesuffix(":rw").removesuffix(":ro"), line.endswith(":rw"))
        for line in written
    )


def _decoded(text: str) -> Mapping[str, Any]:
    if len(text) > MOST_CHARACTERS:
        raise BadServerConfig(f"This is longer than {MOST_CHARACTERS:,} characters.")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadServerConfig(f"This is not JSON: {error.msg} ({where}).") from None
    except RecursionError:
        raise BadServerConfig("This is nested too deeply.") from None
    if not isinstance(data, dict):
        raise BadServerConfig('This must be an object such as {"mcpServers": {"name": {…}}}.')
    return data


def _entries(data: Mapping[str, Any]) -> dict[str, Any]:
    within = data.get("mcp")
    for holder, key in ((data, "mcpServers"), (within, "servers"), (data, "servers")):
        if isinstance(holder, Mapping) and key in holder:
            found = holder[key]
            break
    else:
        found = data
    if not isinstance(found, Mapping) or not found or {"command", *ADDRESSES} & set(found):
        raise BadServerConfig('There is no server here: write {"mcpServers": {"name": {…}}}.')
    if len(found) > MOST_SERVERS:
        raise BadServerConfig(f"These are {len(found)} servers; at most {MOST_SERVERS} can be.")
    return dict(found)


def _same_names(entries: Iterable[str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in entries:
        if (short := slug(name)) and short in seen:
            yield f"{seen[short]!r} and {name!r} would both be called {short!r}: rename one."
        seen.setdefault(short, name)


def _wrong_shape(name: str, entry: Any) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield f"{name!r} must be an object with command or url, not {_kind(entry)}."
        return
    for key, value in entry.items():
        if key in FIELDS:
            if wrong := _wrong_type(FIELDS[key], value):
                yield f"{key} of {name!r} {wrong}."
        elif key not in PASSED_OVER:
            yield f"{key!r} of {name!r} is no field that is known here."
    yield from _wrong_transport(name, entry)


def _wrong_type(expected: str, value: Any) -> str:
    match expected:
        case "text" if not isinstance(value, str):
            return f"must be text, not {_kind(value)}"
        case "texts" if not isinstance(value, list):
            return f"must be a list of texts, not {_kind(value)}"
        case "texts":
            return _wrong_texts(enumerate(value, 1))
        case "named texts" if not isinstance(value, Mapping):
            return f"must be an object of texts, not {_kind(value)}"
        case "named texts":
            return _wrong_texts(value.items())
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            return "" if fits else "must be a number above zero"
        case "flag" if not isinstance(value, bool):
            return f"must be true or false, not {_kind(value)}"
    return ""


def _wrong_texts(items: Iterable[tuple[Any, Any]]) -> str:
    for which, item in items:
        if not isinstance(item, str):
            return f"must hold texts only, and {which!r} is {_kind(item)}"
    return ""


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true or false", dict: "an object", list: "a list"}
    return "null" if value is None else names.get(type(value), "a number")


def _wrong_transport(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    said = entry.get("type", entry.get("transport"))
    addressed = any(entry.get(key) for key in ADDRESSES)
    if bool(entry.get("command")) == addressed:
        which = "both command and url" if addressed else "neither command nor url"
        yield f"{name!r} has {which}: write one of them."
    elif isinstance(said, str):
        meant = TRANSPORTS.get(said.lower())
        if meant is None:
            yield f"type of {name!r} must be stdio, http or sse, not {said!r}."
        elif (meant == "stdio") == addressed:
            yield f"type of {name!r} is {said!r}, which does not go with what it has."


def _config(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    url = next((entry[key] for key in ADDRESSES if entry.get(key)), "").strip()
    limits: dict[str, Any] = {
        ours: _seconds(entry[theirs])
        for ours, theirs in (("call_timeout", "timeout"), ("connect_timeout", "initTimeout"))
        if theirs in entry
    }
    return ServerConfig(
        name=slug(name),
        transport=_transport(entry, url),
        command=entry.get("command", "").strip(),
        args=tuple(entry.get("args", ())),
        env=dict(entry.get("env", {})),
        cwd=entry.get("cwd", ""),
        folders=read_folders(entry.get("folders", ())),
        url=url,
        headers=dict(entry.get("headers", {})),
        **limits,
    )


def _transport(entry: Mapping[str, Any], url: str) -> Transport:
    said = entry.get("type", entry.get("transport"))
    if isinstance(said, str):
        return TRANSPORTS[said.lower()]
    if not url:
        return "stdio"
    return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"


def _seconds(limit: float) -> float:
    """Some programs write seconds, most write milliseconds."""
    return min(limit / 1000 if limit >= 1000 else float(limit), 600.0)


def _mistake(config: ServerConfig, where: str, words: str, subject: str = "") -> Mistake:
    """`words` are said of the field itself, or else of the `subject` within it."""
    place = f"{where} of {config.name!r}"
    said = f"{subject or 'It'} {words}"
    return Mistake(
        field=where,
        beside=said[0].upper() + said[1:],
        whole=f"{place}: {said}" if subject else f"{place} {words}",
    )


def _wrong_name(config: ServerConfig) -> Iterator[Mistake]:
    if not NAME.fullmatch(config.name) or len(config.name) > LONGEST_NAME:
        words = "must be a–z, 0–9, single - or _ between them, and at most"
        yield _mistake(config, "name", f"{words} {LONGEST_NAME} characters.")


def _wrong_program(config: ServerConfig) -> Iterator[Mistake]:
    if not config.command:
        yield _mistake(config, "command", "is empty.")
    for number, text in enumerate(config.argv):
        if any(unicodedata.category(sign) in UNSEEN for sign in text):
            where, subject = ("args", f"item {number}") if number else ("command", "")
            yield _mistake(config, where, "holds a character that cannot be seen.", subject)
    for key, value in config.env.items():
        if not VARIABLE.fullmatch(key):
            yield _mistake(config, "env", "is no name of a variable.", repr(key))
        elif "\0" in value:
            yield _mistake(config, "env", "holds a NUL.", f"the value of {key!r}")


def _wrong_address(config: ServerConfig) -> Iterator[Mistake]:
    try:
        parts = urlsplit(config.url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(sign.isspace() or not sign.isprintable() for sign in config.url):
        yield _mistake(config, "url", "must be a whole address such as https://host/mcp.")
    elif parts.username or parts.password:
        yield _mistake(config, "url", "holds a password: put it into headers.")


def _wrong_headers(config: ServerConfig) -> Iterator[Mistake]:
    for key, value in config.headers.items():
        if not HEADER.fullmatch(key):
            yield _mistake(config, "headers", "is no name of a header.", repr(key))
        elif key.lower() in OURS or key.lower().startswith("mcp-"):
            yield _mistake(config, "headers", "is set by the connection itself.", repr(key))
        elif not value.isascii() or not value.isprintable():
            subject = f"the value of {key!r}"
            yield _mistake(config, "headers", "must be plain ASCII.", subject)


def _placeholders(config: ServerConfig) -> Iterator[Mistake]:
    texts = [("command", "", config.command), ("url", "", config.url), ("cwd", "", config.cwd)]
    texts += [("args", f"item {n}", text) for n, text in enumerate(config.args, 1)]
    texts += [("env", repr(key), text) for key, text in config.env.items()]
    texts += [("headers", repr(key), text) for key, text in config.headers.items()]
    for where, subject, text in texts:
        if found := PLACEHOLDER.search(text):
            words = f"has a blank, {found[0]!r}: write the value itself."
            yield _mistake(config, where, words, subject)
