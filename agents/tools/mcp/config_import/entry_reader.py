"""Reads one entry into the settings of a server."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.engine.sentences import Sentence as _
from agents.tools.mcp.configuration.command_line import is_launcher

from ..configuration.config import (
    MAX_NAME_CHARS,
    SECRET_NAME,
    ServerConfig,
    Transport,
    read_folders,
    slugify,
)
from ..configuration.placeholders import Inputs, MissingValue, Resolver
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

    def __init__(self, name: str, entry: Any, inputs: Inputs, used_names: set[str]) -> None:
        self._name = name
        self._entry = entry
        self._inputs = inputs
        self._used_names = used_names
        self._notes: list[str] = []

    def read(self) -> ImportedServer:
        try:
            return self._read()
        except _Unreadable as problem:
            return self._failed(str(problem))

    def _read(self) -> ImportedServer:
        label = self._name
        if not isinstance(self._entry, Mapping):
            return self._failed(
                _(
                    "%(name)s must be an object with command or url, not %(type)s.",
                    name=repr(label),
                    type=_type_name(self._entry),
                )
            )
        fields = self._collect(_flatten(self._entry))
        command, args = self._command(fields)
        url = self._text(fields, "url").strip()
        if bool(command) == bool(url):
            return self._failed(
                _("%(name)s has both command and url. Enter only one.", name=repr(label))
                if url
                else _("%(name)s has neither command nor url. Enter one.", name=repr(label))
            )
        env = self._named_texts(fields, "env")
        resolver = Resolver(env, self._inputs)
        config = ServerConfig(
            name="",
            transport=self._transport(fields, url),
            command=resolver.resolve_plain("command", command),
            args=tuple(resolver.resolve_plain("args", arg) for arg in args),
            env={k: self._secret(resolver, "env", k, v) for k, v in env.items()},
            folders=read_folders(self._texts(fields, "folders")),
            url=resolver.resolve_plain("url", url),
            headers={
                k: self._secret(resolver, "headers", k, v)
                for k, v in self._named_texts(fields, "headers").items()
            },
            **self._timeouts(fields),
        )
        if config.folders:
            # First, because a text from elsewhere must not grant access unnoticed.
            paths = ", ".join(map(str, config.folders))
            self._notes.insert(0, _("Gets access to these folders: %(paths)s.", paths=paths))
        is_disabled = str(fields.get("disabled")).lower() == "true"
        is_enabled = not is_disabled and str(fields.get("enabled")).lower() != "false"
        if not is_enabled:
            self._notes.append(_("Disabled in this configuration, so it's imported disabled."))
        self._note_what_to_fill_in(config, resolver.missing)
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
        fields: dict[str, Any] = {}
        for key, value in entry.items():
            # An empty option says nothing: an empty list of approved tools, `trust: false`.
            is_empty = key not in {"enabled", "disabled"} and value in ([], {}, False, "")
            if value is None or key in DECORATION or is_empty:
                continue
            field = ALIASES.get(key, key)
            if field in FIELDS:
                fields.setdefault(field, value)
            else:
                self._notes.append(_skip_note(key))
        return fields

    def _command(self, fields: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the program and its arguments, as they work on this machine."""
        args = self._texts(fields, "args")
        if isinstance(fields.get("command"), list):
            argv = self._texts(fields, "command")
            command = argv[0] if argv else ""
            args = [*argv[1:], *args]
        else:
            command = self._text(fields, "command").strip()
        if " " in command and not args and not Path(command).exists():
            with suppress(ValueError):  # a quote without its end
                program, *args = shlex.split(command)
                self._notes.append(
                    _(
                        "Split %(command)s into a program and its arguments.",
                        command=repr(command),
                    )
                )
                command = program
        if bare_program(command) == "cmd":  # Windows: start what `cmd /c` would start
            cmd_args = [*args]
            while cmd_args and cmd_args[0].lower() in {"/d", "/s", "/q"}:
                cmd_args.pop(0)
            if len(cmd_args) > 1 and cmd_args[0].lower() in {"/c", "/k"}:
                self._notes.append(
                    _(
                        "Starts %(program)s directly instead of through %(shell)s.",
                        program=repr(cmd_args[1]),
                        shell=repr(command),
                    )
                )
                command = cmd_args[1]
                args = cmd_args[2:]
        name = bare_program(command)
        if name == command or not is_launcher(name) or Path(command).exists():
            return command, args
        self._notes.append(
            _(
                "Starts %(program)s instead of %(path)s, which isn't on this server.",
                program=repr(name),
                path=repr(command),
            )
        )
        return name, args

    def _transport(self, fields: Mapping[str, Any], url: str) -> Transport:
        type_name = fields.get("type")
        if isinstance(type_name, str) and type_name:
            transport = TRANSPORTS.get(type_name.lower())
            if transport is None:
                sentence = _(
                    "The type of %(name)s must be stdio, http or sse, not %(type)s.",
                    name=repr(self._name),
                    type=repr(type_name),
                )
                raise _Unreadable(sentence)
            if (transport == "stdio") != bool(url):
                return transport if type_name.lower() != "remote" else _guess_transport(url)
            self._notes.append(
                _(
                    "Ignored the type %(type)s, which doesn't match its command or URL.",
                    type=repr(type_name),
                )
            )
        return _guess_transport(url) if url else "stdio"

    def _secret(self, resolver: Resolver, field: str, name: str, text: str) -> str:
        if not text and SECRET_NAME.search(name):
            text = f"${{{name}}}"  # to be filled in, as in many READMEs
        return resolver.resolve_secret(field, name, text)

    def _timeouts(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        timeouts = {}
        for ours, theirs in (("call_timeout", "timeout"), ("connect_timeout", "initTimeout")):
            value = fields.get(theirs)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                # Some programs write seconds, most milliseconds.
                seconds = value / 1000 if value >= 1000 else float(value)
                timeouts[ours] = min(seconds, MAX_TIMEOUT_SECONDS)
            elif value is not None:
                self._notes.append(_skip_note(theirs))
        return timeouts

    def _text(self, fields: Mapping[str, Any], key: str) -> str:
        value = fields.get(key, "")
        if not isinstance(value, str):
            raise _Unreadable(
                self._wrong(key, _("Must be text, not %(type)s.", type=_type_name(value)))
            )
        return value

    def _texts(self, fields: Mapping[str, Any], key: str) -> list[str]:
        value = fields.get(key, [])
        if isinstance(value, str):
            self._notes.append(_("Converted %(field)s to a list.", field=repr(key)))
            try:
                value = shlex.split(value)
            except ValueError:  # a quote without its end
                value = value.split()
        if not isinstance(value, list):
            sentence = _("Must be a list of text values, not %(type)s.", type=_type_name(value))
            raise _Unreadable(self._wrong(key, sentence))
        return [self._as_text(key, number, item) for number, item in enumerate(value, 1)]

    def _named_texts(self, fields: Mapping[str, Any], key: str) -> dict[str, str]:
        value = fields.get(key, {})
        if isinstance(value, list) and all(isinstance(v, str) and "=" in v for v in value):
            self._notes.append(_("Converted %(field)s to an object.", field=repr(key)))
            return {name: text for name, _, text in (item.partition("=") for item in value)}
        if not isinstance(value, Mapping):
            sentence = _(
                "Must be an object with text values, not %(type)s.", type=_type_name(value)
            )
            raise _Unreadable(self._wrong(key, sentence))
        return {
            str(name): self._as_text(key, name, "" if item is None else item)
            for name, item in value.items()
        }

    def _as_text(self, key: str, item: Any, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return json.dumps(value)
        sentence = _(
            "Must contain only text, but %(name)s is %(type)s.",
            name=repr(item),
            type=_type_name(value),
        )
        raise _Unreadable(self._wrong(key, sentence))

    def _wrong(self, key: str, sentence: str) -> str:
        return _(
            "Server %(name)s, %(field)s: %(sentence)s",
            name=repr(self._name),
            field=key,
            sentence=sentence,
        )

    def _note_what_to_fill_in(
        self, config: ServerConfig, missing: Iterable[MissingValue]
    ) -> None:
        for value in missing:
            fields = ", ".join(value.fields)
            self._notes.append(
                _("%(name)s needs a value (%(fields)s).", name=repr(value.name), fields=fields)
            )
            if value.is_secret and (
                open_fields := {"command", "args", "url"} & {*value.fields}
            ):
                self._notes.append(
                    _(
                        "%(name)s is part of %(field)s, which isn't encrypted.",
                        name=repr(value.name),
                        field=min(open_fields),
                    )
                )
        for text in (config.command, *config.args):
            if EXAMPLE_PATH.search(text):
                self._notes.append(
                    _(
                        "%(path)s looks like a path on another computer. Replace it with a "
                        "path on this server.",
                        path=repr(text),
                    )
                )

    def _pick_name(self, config: ServerConfig) -> str:
        """Return a usable name that no other server in the text has."""
        slug = slugify(self._name) or suggest_name(config)
        name = slug[:MAX_NAME_CHARS].strip("_-")
        for number in range(2, MAX_SERVERS + 2):
            if name not in self._used_names:
                break
            name = f"{slug[: MAX_NAME_CHARS - 4].strip('_-')}-{number}"
        self._used_names.add(name)
        if name != slugify(self._name):
            self._notes.append(_("Named %(name)s. You can change the name.", name=repr(name)))
        return name


def _flatten(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry without nested objects; values from the environment are `${NAME}`."""
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
    variables: dict[str, str] = {}
    for key in ("env_keys", "env_vars"):
        if isinstance(flat.get(key), list):
            names = [name for name in flat.pop(key) if isinstance(name, str)]
            variables |= {name: f"${{{name}}}" for name in names}
    if variables:
        key = next((key for key in ("env", "envs", "environment") if key in flat), "env")
        flat[key] = {**variables, **_mapping(flat.get(key))}
    variable_headers = {
        header: f"${{{name}}}"
        for header, name in _mapping(flat.pop("env_http_headers", None)).items()
    }
    if isinstance(token := flat.pop("bearer_token_env_var", None), str):
        variable_headers["Authorization"] = f"Bearer ${{{token}}}"
    if variable_headers:
        key = "http_headers" if "http_headers" in flat else "headers"
        flat[key] = {**variable_headers, **_mapping(flat.get(key))}
    return flat


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _skip_note(key: str) -> str:
    if key in APPROVAL_FIELDS:
        return _(
            "Skipped %(field)s. Set approval for each tool after the import.", field=repr(key)
        )
    if key in TOOL_FIELDS:
        return _(
            "Skipped %(field)s. Enable or disable each tool after the import.", field=repr(key)
        )
    if key in FILE_FIELDS:
        return _("Skipped %(field)s. Enter the values it would set.", field=repr(key))
    if key in {"cwd", "working_directory", "workingDirectory"}:
        return _("Skipped %(field)s. Every server runs in its own folder.", field=repr(key))
    return _("Skipped %(field)s, which isn't used here.", field=repr(key))


def _guess_transport(url: str) -> Transport:
    return "sse" if url_path(url).rstrip("/").endswith("/sse") else "http"


def _type_name(value: Any) -> str:
    names = {str: "text", bool: _("true or false"), dict: _("an object"), list: _("a list")}
    return "null" if value is None else names.get(type(value), _("a number"))
