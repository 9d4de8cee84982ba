"""Reads one entry into the settings of a server."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.tools.mcp.command_line import is_launcher

from ..config import MAX_NAME_CHARS, SECRET_NAME, ServerConfig, Transport, read_folders, slugify
from ..placeholders import Inputs, MissingValue, Resolver
from .entries import dig, is_nested_command
from .imported_server import MAX_SERVERS, ImportedServer
from .known_fields import (
    ALIASES,
    APPROVAL_FIELDS,
    DECORATION,
    FIELDS,
    FILE_FIELDS,
    TOOL_FIELDS,
    TRANSPORTS,
)
from .suggested_names import bare_program, suggest_name, url_path

MAX_NOTES = 30
MAX_TIMEOUT_SECONDS = 600.0
EXAMPLE_PATH = re.compile(
    r"/(?:absolute/)?path/to/|/path/to$|/(?:Users|home)/(?:user(?:name)?|you|me|yourname)\b"
    r"|(?<![A-Za-z])[A-Za-z]:[\\/]"
)


class _Unreadable(Exception):
    """Raised when a field has a type that can't be converted."""


class EntryReader:
    """Reads one entry into a server, with notes about what was changed."""

    def __init__(self, name: str, entry: Any, inputs: Inputs, taken: set[str]) -> None:
        self._name = name
        self._entry = entry
        self._inputs = inputs
        self._taken = taken
        self._notes: list[str] = []

    def read(self) -> ImportedServer:
        try:
            return self._read()
        except _Unreadable as problem:
            return self._failed(str(problem))

    def _read(self) -> ImportedServer:
        label = self._name
        if not isinstance(self._entry, Mapping):
            kind = _type_name(self._entry)
            return self._failed(f"{label!r} must be an object with command or url, not {kind}.")
        given = self._collect(_flatten(self._entry))
        command, args = self._command(given)
        url = self._text(given, "url").strip()
        if bool(command) == bool(url):
            return self._failed(
                f"{label!r} has both command and url. Enter only one."
                if url
                else f"{label!r} has neither command nor url. Enter one."
            )
        env = self._named_texts(given, "env")
        resolver = Resolver(env, self._inputs)
        config = ServerConfig(
            name="",
            transport=self._transport(given, url),
            command=resolver.resolve_plain("command", command),
            args=tuple(resolver.resolve_plain("args", arg) for arg in args),
            env={k: self._secret(resolver, "env", k, v) for k, v in env.items()},
            folders=read_folders(self._texts(given, "folders")),
            url=resolver.resolve_plain("url", url),
            headers={
                k: self._secret(resolver, "headers", k, v)
                for k, v in self._named_texts(given, "headers").items()
            },
            **self._timeouts(given),
        )
        if config.folders:
            # First, because a text from elsewhere must not grant access unnoticed.
            paths = ", ".join(map(str, config.folders))
            self._notes.insert(0, f"Gets access to these folders: {paths}.")
        is_enabled = self._is_enabled(given)
        if not is_enabled:
            self._notes.append("Disabled in this configuration, so it's imported disabled.")
        self._note_missing(resolver.missing)
        self._note_examples(config)
        config = replace(config, name=self._pick_name(config))
        return ImportedServer(
            label=label or config.name,
            config=config,
            is_enabled=is_enabled,
            missing=tuple(resolver.missing),
            notes=tuple(dict.fromkeys(self._notes))[:MAX_NOTES],
        )

    def _failed(self, problem: str) -> ImportedServer:
        return ImportedServer(label=self._name, notes=tuple(self._notes), problems=(problem,))

    def _collect(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that mean something here; note the others."""
        given: dict[str, Any] = {}
        for key, value in entry.items():
            field = ALIASES.get(key, key)
            if value is None or key in DECORATION or _is_empty_option(key, value):
                continue
            if field in FIELDS:
                given.setdefault(field, value)
            else:
                self._notes.append(_skip_note(key))
        return given

    def _command(self, given: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the program and its arguments, as they work on this machine."""
        args = self._texts(given, "args")
        written = given.get("command", "")
        if isinstance(written, list):
            words = self._texts({"command": written}, "command")
            command, args = (words[0] if words else ""), [*words[1:], *args]
        else:
            command = self._text(given, "command").strip()
        if " " in command and not args and not Path(command).exists():
            command, args = self._split(command)
        command, args = self._without_cmd(command, args)
        return self._portable(command), args

    def _split(self, command: str) -> tuple[str, list[str]]:
        try:
            program, *args = shlex.split(command)
        except ValueError:
            return command, []
        self._notes.append(f"Split {command!r} into a program and its arguments.")
        return program, args

    def _without_cmd(self, command: str, args: list[str]) -> tuple[str, list[str]]:
        """Return what `cmd /c` of Windows would start."""
        if bare_program(command) != "cmd":
            return command, args
        rest = [*args]
        while rest and rest[0].lower() in {"/d", "/s", "/q"}:
            rest.pop(0)
        if len(rest) < 2 or rest[0].lower() not in {"/c", "/k"}:
            return command, args
        self._notes.append(f"Starts {rest[1]!r} directly instead of through {command!r}.")
        return rest[1], rest[2:]

    def _portable(self, command: str) -> str:
        """Return a launcher by its name, if it has another machine's path."""
        name = bare_program(command)
        if name == command or not is_launcher(name) or Path(command).exists():
            return command
        self._notes.append(
            f"Starts {name!r} instead of {command!r}, which isn't on this server."
        )
        return name

    def _transport(self, given: Mapping[str, Any], url: str) -> Transport:
        written = given.get("type")
        if isinstance(written, str) and written:
            transport = TRANSPORTS.get(written.lower())
            if transport is None:
                sentence = (
                    f"The type of {self._name!r} must be stdio, http or sse, not {written!r}."
                )
                raise _Unreadable(sentence)
            if (transport == "stdio") != bool(url):
                return transport if written.lower() != "remote" else _guess_transport(url)
            self._notes.append(
                f"Ignored the type {written!r}, which doesn't match its command or URL."
            )
        return _guess_transport(url) if url else "stdio"

    def _secret(self, resolver: Resolver, where: str, name: str, text: str) -> str:
        if not text and SECRET_NAME.search(name):
            text = f"${{{name}}}"  # to be filled in, as in many READMEs
        return resolver.resolve_secret(where, name, text)

    def _timeouts(self, given: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for ours, theirs in (("call_timeout", "timeout"), ("connect_timeout", "initTimeout")):
            value = given.get(theirs)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                found[ours] = _to_seconds(value)
            elif value is not None:
                self._notes.append(_skip_note(theirs))
        return found

    def _is_enabled(self, given: Mapping[str, Any]) -> bool:
        flags = {key: str(given.get(key)).lower() for key in ("disabled", "enabled")}
        return flags["disabled"] != "true" and flags["enabled"] != "false"

    def _text(self, given: Mapping[str, Any], key: str) -> str:
        value = given.get(key, "")
        if not isinstance(value, str):
            raise _Unreadable(self._wrong(key, f"Must be text, not {_type_name(value)}."))
        return value

    def _texts(self, given: Mapping[str, Any], key: str) -> list[str]:
        value = given.get(key, [])
        if isinstance(value, str):
            self._notes.append(f"Converted {key!r} to a list.")
            value = _split_words(value)
        if not isinstance(value, list):
            sentence = f"Must be a list of text values, not {_type_name(value)}."
            raise _Unreadable(self._wrong(key, sentence))
        return [self._as_text(key, number, item) for number, item in enumerate(value, 1)]

    def _named_texts(self, given: Mapping[str, Any], key: str) -> dict[str, str]:
        value = given.get(key, {})
        if isinstance(value, list) and all(isinstance(v, str) and "=" in v for v in value):
            self._notes.append(f"Converted {key!r} to an object.")
            return {name: text for name, _, text in (item.partition("=") for item in value)}
        if not isinstance(value, Mapping):
            sentence = f"Must be an object with text values, not {_type_name(value)}."
            raise _Unreadable(self._wrong(key, sentence))
        return {
            str(name): self._as_text(key, name, "" if item is None else item)
            for name, item in value.items()
        }

    def _as_text(self, key: str, which: Any, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return json.dumps(value)
        sentence = f"Must contain only text, but {which!r} is {_type_name(value)}."
        raise _Unreadable(self._wrong(key, sentence))

    def _wrong(self, key: str, sentence: str) -> str:
        return f"Server {self._name!r}, {key}: {sentence}"

    def _note_missing(self, missing: Iterable[MissingValue]) -> None:
        for value in missing:
            fields = ", ".join(value.fields)
            self._notes.append(f"{value.name!r} needs a value ({fields}).")
            if value.is_secret and (
                open_fields := {"command", "args", "url"} & {*value.fields}
            ):
                where = min(open_fields)
                self._notes.append(f"{value.name!r} is part of {where}, which isn't encrypted.")

    def _note_examples(self, config: ServerConfig) -> None:
        for text in (config.command, *config.args):
            if EXAMPLE_PATH.search(text):
                self._notes.append(
                    f"{text!r} looks like a path on another computer. "
                    "Replace it with a path on this server."
                )

    def _pick_name(self, config: ServerConfig) -> str:
        """Return a usable name that no other server in the text has."""
        wanted = slugify(self._name) or suggest_name(config)
        name = wanted[:MAX_NAME_CHARS].strip("_-")
        for number in range(2, MAX_SERVERS + 2):
            if name not in self._taken:
                break
            name = f"{wanted[: MAX_NAME_CHARS - 4].strip('_-')}-{number}"
        self._taken.add(name)
        if name != slugify(self._name):
            self._notes.append(f"Named {name!r}. You can change the name.")
        return name


def _flatten(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry without the objects that some programs nest in it."""
    flat = dict(entry)
    for key in ("config", "transport"):  # Goose, Continue
        if isinstance(flat.get(key), Mapping):
            flat = {**flat.pop(key), **flat}
    if is_nested_command(flat.get("command")):  # Zed
        inner = dict(flat.pop("command"))
        flat = {"command": inner.pop("path"), **inner, **flat}
    if isinstance(headers := dig(flat, ("requestOptions", "headers")), Mapping):  # Continue
        flat.pop("requestOptions")
        flat["headers"] = {**headers, **_mapping(flat.get("headers"))}
    flat |= _variables_by_name(flat)
    return flat


def _variables_by_name(flat: dict[str, Any]) -> dict[str, Any]:
    """Return the values that a program would take from its own environment, as variables."""
    more: dict[str, Any] = {}
    named = [
        flat.pop(key) for key in ("env_keys", "env_vars") if isinstance(flat.get(key), list)
    ]
    if names := [name for names in named for name in names if isinstance(name, str)]:
        key = next((key for key in ("env", "envs", "environment") if key in flat), "env")
        more[key] = {**{name: f"${{{name}}}" for name in names}, **_mapping(flat.get(key))}
    found = _mapping(flat.pop("env_http_headers", None))
    wanted = {name: f"${{{variable}}}" for name, variable in found.items()}
    if isinstance(token := flat.pop("bearer_token_env_var", None), str):
        wanted["Authorization"] = f"Bearer ${{{token}}}"
    if wanted:
        key = "http_headers" if "http_headers" in flat else "headers"
        more[key] = {**wanted, **_mapping(flat.get(key))}
    return more


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote without its end
        return text.split()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_empty_option(key: str, value: Any) -> bool:
    """Whether it says nothing: an empty list of approved tools, `trust: false`."""
    return key not in {"enabled", "disabled"} and value in ([], {}, False, "")


def _skip_note(key: str) -> str:
    if key in APPROVAL_FIELDS:
        return f"Skipped {key!r}. Set approval for each tool after the import."
    if key in TOOL_FIELDS:
        return f"Skipped {key!r}. Enable or disable each tool after the import."
    if key in FILE_FIELDS:
        return f"Skipped {key!r}. Enter the values it would set."
    if key in {"cwd", "working_directory", "workingDirectory"}:
        return f"Skipped {key!r}. Every server runs in its own folder."
    return f"Skipped {key!r}, which isn't used here."


def _guess_transport(url: str) -> Transport:
    return "sse" if url_path(url).rstrip("/").endswith("/sse") else "http"


def _to_seconds(limit: float) -> float:
    """Convert a timeout, which some programs write in seconds and most in milliseconds."""
    return min(limit / 1000 if limit >= 1000 else float(limit), MAX_TIMEOUT_SECONDS)


def _type_name(value: Any) -> str:
    names = {str: "text", bool: "true or false", dict: "an object", list: "a list"}
    return "null" if value is None else names.get(type(value), "a number")
