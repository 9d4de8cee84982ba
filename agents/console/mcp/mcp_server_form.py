"""The forms of an MCP server: its columns, and the page with a command line and rows."""

import shlex
from typing import Any, cast

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext_lazy as _

from agents.catalog import mcp_servers
from agents.db.sentences import translate
from agents.models import McpServer
from agents.models.secret import UnreadableSecret, WriteOnlyTextarea
from agents.models.types import AnyUser
from agents.tools.mcp.configuration.config import ServerConfig, read_folders

from ..admin_classes.secret_pairs import SecretPairsField, merge_pairs

# Each secret with the fields it was entered for: if they change, it must be entered again.
SECRET_FIELDS = {"env": ("command", "args"), "headers": ("url",)}
REENTER_SECRET = _(
    "%(field)s was set for a different URL or command. Enter the values again, or remove them."
)
REENTER_CLIENT_SECRET = _(
    "The client secret was set for a different URL. Enter it again, or remove the client ID."
)
NO_CLIENT_ID = _("Enter the client ID that this secret belongs to.")
KEEP_CLIENT_SECRET = _("Leave empty to keep the saved one.")
CLIENT_SECRET_HELP = _(
    "Leave empty if the client has none. Stored encrypted and never displayed again."
)
SECRET_SET = _(
    'Already set. Leave empty to keep it, or enter {} to remove it. Example: {"NAME": "value"}'
)
SECRET_NOT_SET = _('Not set. Example: {"NAME": "value"}')


class ServerForm(forms.ModelForm):
    """Rejects invalid servers, with the messages of the checks, before saving or starting."""

    user: AnyUser = AnonymousUser()  # the user of the form
    program_field = "args"  # where problems of the arguments are displayed

    class Meta:
        model = McpServer
        fields = [
            "name",
            "transport",
            "enabled",
            "timeout",
            "connect_timeout",
            "trusts_annotations",
            "isolation",
            "max_instances",
            "url",
            "sign_in",
            "oauth_client_id",
            "oauth_client_secret",
            "headers",
            "command",
            "args",
            "env",
            "folders",
            "memory_mb",
            "cpu_seconds",
        ]
        widgets = {
            **dict.fromkeys(
                SECRET_FIELDS, WriteOnlyTextarea(attrs={"class": "vLargeTextField"})
            ),
            "oauth_client_id": forms.TextInput(
                attrs={"class": "vLargeTextField", "autocomplete": "off", "spellcheck": "false"}
            ),
            "oauth_client_secret": forms.PasswordInput(
                attrs={"class": "vLargeTextField", "autocomplete": "new-password"}
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.partly_kept: set[str] = set()  # secrets of which only some values were entered
        if "oauth_client_secret" in self.fields:
            is_set = bool(self.instance.oauth_client_secret)
            note = KEEP_CLIENT_SECRET if is_set else CLIENT_SECRET_HELP
            self.fields["oauth_client_secret"].help_text = note
        for name in [*SECRET_FIELDS, "args", "folders"]:
            if name in self.fields:
                self.fields[name].widget.attrs["rows"] = 4 if name != "folders" else 2
        for name in SECRET_FIELDS:
            if name in self.fields:
                is_set = bool(getattr(self.instance, name))
                self.fields[name].help_text = SECRET_SET if is_set else SECRET_NOT_SET

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        saved = McpServer.objects.filter(pk=self.instance.pk).first()
        secrets = {name: self._resolve_secret(name, cleaned, saved) for name in SECRET_FIELDS}
        unread = {*self.errors}  # invalid fields can't be checked further
        if self.program_field in unread:
            unread |= {"command", "args"}  # one depends on the other
        limits = {name: cleaned.get(name) for name in ("memory_mb", "cpu_seconds")}
        self.config = ServerConfig(
            name=cleaned.get("name", self.instance.name),
            transport=cleaned.get("transport", self.instance.transport),
            command=cleaned.get("command", ""),
            args=tuple(cleaned.get("args", ())),
            folders=read_folders(cleaned.get("folders", "").splitlines()),
            sandbox=mcp_servers.sandbox_policy(),
            limits=mcp_servers.child_limits(McpServer(**limits)),
            url=cleaned.get("url", ""),
            connect_timeout=cleaned.get("connect_timeout") or self.instance.connect_timeout,
            call_timeout=cleaned.get("timeout") or self.instance.timeout,
            **secrets,
        )
        self._check_client(cleaned, saved)
        if cleaned.get("sign_in") and cleaned.get("transport") == McpServer.Transport.STDIO:
            cleaned["sign_in"] = ""  # programs have no page to sign in on
        for problem in mcp_servers.validate(self.config, self.user):
            if problem.field not in unread:
                is_program = problem.field in {"command", "args"}
                is_there = problem.field in self.fields
                field = self.program_field if is_program and not is_there else problem.field
                # A problem of a field that can't be edited is at the top of the page.
                self.add_error(
                    field if field in self.fields else None, translate(problem.sentence)
                )
        return cleaned

    def _check_client(self, cleaned: dict[str, Any], saved: McpServer | None) -> None:
        """Keep the secret of the OAuth client only with its client ID and its URL."""
        saved = saved or McpServer()
        client_id = cleaned.get("oauth_client_id", saved.oauth_client_id)
        is_typed = bool(cleaned.get("oauth_client_secret"))
        if is_typed and not client_id:
            self.add_error("oauth_client_id", NO_CLIENT_ID)
        is_moved = cleaned.get("url", saved.url) != saved.url
        is_other = client_id != saved.oauth_client_id
        if is_other and not is_typed:
            self.instance.oauth_client_secret = ""  # of the client before
        elif is_moved and saved.oauth_client_secret and not is_typed:
            self.add_error("oauth_client_secret", REENTER_CLIENT_SECRET)
        if is_moved or is_other or is_typed:
            self.instance.oauth_client = {}

    def clean_args(self) -> list[str]:
        args = self.cleaned_data["args"] or []
        if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
            raise forms.ValidationError(_("Arguments must be a JSON list of strings."))
        return args

    def _resolve_secret(
        self, name: str, cleaned: dict[str, Any], saved: McpServer | None
    ) -> Any:
        """Return the secret as it will be: typed, or saved; empty if invalid."""
        if name in self.errors:
            return {}
        typed = cleaned.get(name)
        try:
            secret = getattr(self.instance, name).reveal() if typed in (None, "") else typed
        except UnreadableSecret as error:
            self.add_error(name, str(error))
            return {}
        label = {"field": self.fields[name].label}
        is_kept = typed in (None, "") or name in self.partly_kept
        if is_kept and saved and getattr(saved, name):
            # Compared with the row: a form trusts its own hidden fields about what changed.
            destination = SECRET_FIELDS[name]
            if any(cleaned.get(field) != getattr(saved, field) for field in destination):
                self.add_error(name, REENTER_SECRET % label)
        if isinstance(secret, dict) and all(isinstance(text, str) for text in secret.values()):
            return secret
        self.add_error(name, _("%(field)s must be a JSON object with string values.") % label)
        return {}


class CommandLineField(forms.CharField):
    """A program with its arguments, as in a shell; nothing but quotes has a meaning."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(
            attrs={"class": "vLargeTextField code", "rows": 1, "spellcheck": "false"}
        )
        super().__init__(**{"required": False, "widget": widget, **options})

    def shown_of(self, server: McpServer) -> str:
        """Return the saved command, to detect concurrent changes."""
        return command_line(server)

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        try:
            shlex.split(text)
        except ValueError as error:
            raise forms.ValidationError(UNBALANCED) from error
        return text


UNBALANCED = _("A quotation mark isn’t closed. Close it, or write \\ before it.")


class ServerPageForm(ServerForm):
    """The same server as people enter it: a command line, and a row for each secret."""

    program_field = "command_line"
    command_line = CommandLineField(
        label=_("Command"),
        max_length=20_000,
        help_text=_(
            "A program with its arguments, e.g. npx -y @modelcontextprotocol/server-memory. "
            "It is started without a shell."
        ),
    )
    env = SecretPairsField(
        label=_("Environment variables"),
        add_label=_("Add variable"),
        help_text=_("Values are stored encrypted and never displayed again."),
    )
    headers = SecretPairsField(
        label=_("Headers"),
        add_label=_("Add header"),
        help_text=_("Values are stored encrypted and never displayed again."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["command_line"] = command_line(self.instance)
        for name in SECRET_FIELDS:
            if name in self.fields:
                self.fields[name].help_text = type(self).base_fields[name].help_text
                field = cast(SecretPairsField, self.fields[name])
                field.show_saved(getattr(self.instance, name))

    def clean_command_line(self) -> str:
        text: str = self.cleaned_data["command_line"]
        self.cleaned_data["command"], *self.cleaned_data["args"] = shlex.split(text) or [""]
        return text

    def clean_env(self) -> Any:
        return self._merge_pairs("env")

    def clean_headers(self) -> Any:
        return self._merge_pairs("headers")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if "command" in cleaned:
            self.instance.command = cleaned["command"]
            self.instance.args = cleaned["args"]
        return cleaned

    def _merge_pairs(self, name: str) -> Any:
        secret = getattr(self.instance, name)
        values, is_partly_kept = merge_pairs(self.cleaned_data[name], secret)
        if is_partly_kept:
            self.partly_kept.add(name)
        return values


def command_line(server: McpServer) -> str:
    """Return a server's command and arguments as one line."""
    return shlex.join([server.command, *map(str, server.args)]) if server.command else ""
