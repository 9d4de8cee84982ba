"""The form of an MCP server: transport, program, secrets and sandbox."""

from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext_lazy as _

from agents.catalog import mcp_servers
from agents.db.sentences import translate
from agents.models import McpServer
from agents.models.secret import UnreadableSecret, WriteOnlyTextarea
from agents.models.types import AnyUser
from agents.tools.mcp.configuration.config import ServerConfig, read_folders

# Each secret with the fields it was entered for: if they change, it must be entered again.
SECRET_FIELDS = {"env": ("command", "args"), "headers": ("url",)}
REENTER_SECRET = _(
    "%(field)s was set for a different URL or command. Enter it again, or enter {} "
    "to remove it."
)
SECRET_SET = _(
    'Already set. Leave empty to keep it, or enter {} to remove it. Example: {"NAME": "value"}'
)
SECRET_NOT_SET = _('Not set. Example: {"NAME": "value"}')


class ServerForm(forms.ModelForm):
    """Rejects invalid servers, with the messages of the checks, before saving or starting."""

    user: AnyUser = AnonymousUser()  # the user of the form

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
            "headers",
            "command",
            "args",
            "env",
            "folders",
            "memory_mb",
            "cpu_seconds",
        ]
        widgets = dict.fromkeys(
            SECRET_FIELDS, WriteOnlyTextarea(attrs={"class": "vLargeTextField"})
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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
        if "args" in unread:
            unread.add("command")  # which depends on its arguments
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
        for problem in mcp_servers.validate(self.config, self.user):
            if problem.field not in unread:
                # A problem of a field that can't be edited is at the top of the page.
                field = problem.field if problem.field in self.fields else None
                self.add_error(field, translate(problem.sentence))
        return cleaned

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
        if typed in (None, "") and saved and getattr(saved, name):
            # Compared with the row: a form trusts its own hidden fields about what changed.
            destination = SECRET_FIELDS[name]
            if any(cleaned.get(field) != getattr(saved, field) for field in destination):
                self.add_error(name, REENTER_SECRET % label)
        if isinstance(secret, dict) and all(isinstance(text, str) for text in secret.values()):
            return secret
        self.add_error(name, _("%(field)s must be a JSON object with string values.") % label)
        return {}
