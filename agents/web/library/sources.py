"""Sources of a collection on its page: their rows, and the form of one."""

import re
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Count, F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from agents.catalog.mcp_servers import resources
from agents.db.sanitize import sanitize_line, visible_name
from agents.db.sentences import translate
from agents.knowledge import sources
from agents.models import Collection, DocumentSource, McpServer
from agents.models.knowledge.sources import followable_by
from agents.models.types import AnyUser, LazyText
from agents.tools.egress import EgressRefused, validate_url

Kind = DocumentSource.Kind
MAX_SOURCES = 50  # of a collection
ICONS = {Kind.FOLDER: "folder", Kind.GIT: "code", Kind.S3: "database", Kind.MCP: "server"}
# What a source's place consists of. Each first one is required.
PLACE_FIELDS: dict[str, tuple[str, ...]] = {
    Kind.FOLDER: ("path",),
    Kind.GIT: ("url", "branch", "folder"),
    Kind.S3: ("bucket", "key_prefix", "endpoint", "region", "key_id"),
    Kind.MCP: ("server", "uri_prefix"),
}
SECRET_FIELDS: dict[str, tuple[str, ...]] = {
    Kind.FOLDER: (),
    Kind.GIT: ("token",),
    Kind.S3: ("secret_key",),
    Kind.MCP: (),
}
# A saved secret is never used for another one of these.
SECRET_FOR = {Kind.GIT: ("url",), Kind.S3: ("endpoint", "key_id")}
MAX_CHARS = 1_000
CHANGED_FIELDS = (
    "name",
    "interval",
    "place",
    "secret",
    "problem",
    "missing",
    "deletable",
    "place_version",
    "lease",
    "lease_until",
    "next_check_at",
)
BRANCH = re.compile(r"(?!-)(?!.*\.\.)[\w./+-]{1,200}")
BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


def _text_field(label: LazyText, help_text: LazyText = "") -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, max_length=MAX_CHARS, required=False
    )


class SourceForm(forms.Form):
    """A new source, or changes of one; its kind stays."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=80)
    kind = forms.ChoiceField(label=gettext_lazy("Kind"))
    interval = forms.ChoiceField(
        label=pgettext_lazy("source of documents", "Check"),
        choices=DocumentSource.Interval.choices,
        initial=DocumentSource.Interval.DAILY,
    )
    path = _text_field(
        gettext_lazy("Folder on the server"),
        gettext_lazy("It must be in a folder that ASHIATO_SOURCE_FOLDERS lists."),
    )
    url = _text_field(gettext_lazy("URL of the repository"))
    branch = _text_field(
        gettext_lazy("Branch"), gettext_lazy("Leave empty for the default branch.")
    )
    folder = _text_field(
        gettext_lazy("Folder in the repository"),
        gettext_lazy("Leave empty to follow all folders."),
    )
    token = _text_field(
        gettext_lazy("Access token"),
        gettext_lazy("Only for private repositories. Stored encrypted."),
    )
    bucket = _text_field(gettext_lazy("Bucket"))
    key_prefix = _text_field(
        gettext_lazy("Folder in the bucket"),
        gettext_lazy("Leave empty to follow the whole bucket."),
    )
    endpoint = _text_field(gettext_lazy("Endpoint"), gettext_lazy("Leave empty for AWS."))
    region = _text_field(gettext_lazy("Region"))
    key_id = _text_field(
        gettext_lazy("Access key ID"), gettext_lazy("Leave empty if the bucket is public.")
    )
    secret_key = _text_field(
        gettext_lazy("Secret access key"), gettext_lazy("Stored encrypted.")
    )
    server = forms.ModelChoiceField(
        label=gettext_lazy("MCP server"),
        queryset=McpServer.objects.filter(enabled=True),
        help_text=gettext_lazy("Its resources become documents."),
        required=False,
    )
    uri_prefix = _text_field(
        gettext_lazy("Only URIs that begin with"),
        gettext_lazy("Leave empty to follow all resources."),
    )

    def __init__(
        self, *args: Any, source: DocumentSource, user: AnyUser, **kwargs: Any
    ) -> None:
        self.source = source
        # A server is read with the installation's rights, so only those who manage it choose.
        may_choose = user.has_perm("agents.change_mcpserver")
        saved = {"name": source.name, "kind": source.kind, "interval": source.interval}
        kwargs["initial"] = saved | source.place
        super().__init__(*args, **kwargs)
        offered = [kind for kind in sources.kinds() if kind != Kind.MCP or may_choose]
        self.kinds = [source.kind] if source.pk else offered
        kind_field = self.fields["kind"]
        assert isinstance(kind_field, forms.ChoiceField)
        kind_field.choices = [(kind, Kind(kind).label) for kind in self.kinds]
        if not may_choose:
            server_field = self.fields["server"]
            assert isinstance(server_field, forms.ModelChoiceField)
            own = McpServer.objects.filter(pk=source.place.get("server"))
            server_field.queryset = own
        kind_field.disabled = source.pk is not None
        secret_fields = [name for names in SECRET_FIELDS.values() for name in names]
        for name in secret_fields:
            self.fields[name].widget = forms.PasswordInput()
            if source.secret:
                self.fields[name].help_text = _("Leave empty to keep the saved one.")
        for name, form_field in self.fields.items():
            is_secret = name in secret_fields
            complete = "new-password" if is_secret else "off"
            form_field.widget.attrs |= {"class": "field", "autocomplete": complete}
        self.fields["url"].widget.attrs["placeholder"] = "https://example.com/team/docs.git"
        self.fields["path"].widget.attrs["placeholder"] = "/srv/documents"

    @property
    def groups(self) -> "list[tuple[str, list[forms.BoundField]]]":
        """The fields of each kind that the form offers."""
        return [
            (kind, [self[name] for name in (*PLACE_FIELDS[kind], *SECRET_FIELDS[kind])])
            for kind in map(Kind, self.kinds)
        ]

    def clean_name(self) -> str:
        name = visible_name(self.cleaned_data["name"]).replace("/", " ").strip(". ")
        if not name:
            raise forms.ValidationError(_("Enter a name."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        kind = Kind(cleaned["kind"]) if cleaned.get("kind") else None
        if kind is None:
            return cleaned
        for name in PLACE_FIELDS[kind]:
            value = cleaned.get(name)
            if isinstance(value, str):
                cleaned[name] = sanitize_line(value)
        required = PLACE_FIELDS[kind][0]
        if not cleaned.get(required):
            if required not in self.errors:
                self.add_error(required, _("This field is required."))
            return cleaned
        try:
            self._check_place(kind, cleaned)
        except (EgressRefused, sources.PlaceUnreadable) as error:
            self.add_error("endpoint" if kind == Kind.S3 else required, translate(str(error)))
        self._check_secret(kind, cleaned)
        return cleaned

    def _check_place(self, kind: str, cleaned: dict[str, Any]) -> None:
        match kind:
            case Kind.FOLDER:
                sources.find_folder(cleaned["path"])
            case Kind.GIT:
                if validate_url(cleaned["url"]).scheme != "https":
                    self.add_error("url", _("The URL must start with https://."))
                if cleaned["branch"] and not BRANCH.fullmatch(cleaned["branch"]):
                    self.add_error("branch", _("This isn't the name of a branch."))
                cleaned["folder"] = cleaned["folder"].strip("/")
            case Kind.S3:
                if not BUCKET.fullmatch(cleaned["bucket"]):
                    self.add_error("bucket", _("This isn't the name of a bucket."))
                if cleaned["endpoint"]:
                    validate_url(cleaned["endpoint"])
            case Kind.MCP:
                if problem := resources.refusal(cleaned["server"]):
                    self.add_error("server", translate(problem))

    def _check_secret(self, kind: Kind, cleaned: dict[str, Any]) -> None:
        """Have a saved secret entered again if it would go elsewhere."""
        for name in SECRET_FIELDS[kind]:
            former = self.source.place
            is_elsewhere = any(
                (cleaned.get(key) or "") != former.get(key, "") for key in SECRET_FOR[kind]
            )
            if self.source.secret and is_elsewhere and not cleaned.get(name):
                message = _("Enter it again: the saved one belongs to another address.")
                self.add_error(name, message)

    def save(self) -> DocumentSource:
        """Save the source; it is checked at once."""
        cleaned = self.cleaned_data
        source = self.source
        kind = Kind(cleaned["kind"])
        source.kind = kind
        source.name = cleaned["name"]
        source.interval = cleaned["interval"]
        place = {name: cleaned[name] for name in PLACE_FIELDS[kind] if cleaned.get(name)}
        source.place = place | ({"server": place["server"].pk} if "server" in place else {})
        for name in SECRET_FIELDS[kind]:
            if cleaned[name]:
                source.secret = cleaned[name]
        source.problem = ""
        source.missing = 0
        source.deletable = 0
        source.place_version = ""
        # A check of the old place ends.
        source.lease = ""
        source.lease_until = None
        source.next_check_at = timezone.now() if source.enabled else None
        source.save(update_fields=CHANGED_FIELDS if source.pk else None)
        return source


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source in the list of its collection."""

    source: DocumentSource
    documents: int
    user: AnyUser
    invalid_form: SourceForm | None = None

    @property
    def form(self) -> SourceForm:
        if self.invalid_form is not None:
            return self.invalid_form
        return SourceForm(
            source=self.source, user=self.user, auto_id=f"source-{self.source.pk}-%s"
        )

    @property
    def icon(self) -> str:
        return ICONS[Kind(self.source.kind)]

    @property
    def place(self) -> str:
        """Where its files are, in one line."""
        place = self.source.place
        match self.source.kind:
            case Kind.FOLDER:
                text = place.get("path", "")
            case Kind.GIT:
                text = " · ".join(place[key] for key in PLACE_FIELDS[Kind.GIT] if key in place)
            case Kind.S3:
                text = "/".join(filter(None, (place.get("bucket"), place.get("key_prefix"))))
            case _:
                server = McpServer.objects.filter(pk=place.get("server")).first()
                names = (server.name if server else "", place.get("uri_prefix", ""))
                text = " · ".join(name for name in names if name)
        return visible_name(text)

    @property
    def problem(self) -> str:
        return translate(self.source.problem)

    @property
    def is_running(self) -> bool:
        """Whether it is being checked, or will be in a moment."""
        source = self.source
        now = timezone.now()
        is_leased = source.lease_until is not None and source.lease_until > now
        is_due = source.next_check_at is not None and source.next_check_at <= now
        return source.enabled and (is_leased or is_due)


def rows(
    collection: Collection, user: AnyUser, form: SourceForm | None = None
) -> list[SourceRow]:
    """Return the sources of a collection; `form` is the one that has errors, if any."""
    is_inside = Q(documents__collection=F("collection"))
    listed = collection.sources.annotate(document_count=Count("documents", filter=is_inside))
    return [
        SourceRow(
            source=source,
            documents=source.document_count,
            user=user,
            invalid_form=form if form is not None and form.source.pk == source.pk else None,
        )
        for source in listed.defer("removed")
    ]


def context(
    collection: Collection, user: AnyUser, form: SourceForm | None = None
) -> dict[str, Any]:
    """Return what the section needs; nothing for those who can't manage sources."""
    if not followable_by(user).filter(pk=collection.pk).exists():
        return {}
    is_new = form is not None and form.source.pk is None
    return {
        "sources": rows(collection, user, form),
        "source_form": form
        if is_new
        else SourceForm(source=DocumentSource(), user=user, auto_id="source-new-%s"),
        "has_source_folders": bool(sources.allowed_folders()),
        "may_follow": True,
    }
