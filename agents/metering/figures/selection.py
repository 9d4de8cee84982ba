"""Which runs are counted: filters that combine, and the list of runs that shows the same."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser, Group, User
from django.urls import reverse

from agents.models import ReviewScope, Run
from agents.models.catalog.rights import Role
from agents.models.runs.runs import RunQuerySet
from agents.models.types import AnyUser

from .models import UNKNOWN_TOOL
from .windows import Window

PERMISSION = "dashboard.view_dashboard"
REVIEW_PERMISSION = "agents.review_runs"
PEOPLE_PERMISSION = "auth.view_user"
DRAFT = "draft"
MAX_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters; empty ones select everything."""

    agent: str = ""
    version: str = ""  # a number, or "draft"
    model: str = ""
    tool: str = ""
    group: int | None = None
    person: int | None = None

    @classmethod
    def parse(cls, parameters: Mapping[str, str], *, sees_people: bool) -> "Selection":
        version = parameters.get("version", "")
        return cls(
            agent=_clean(parameters.get("agent", "")),
            version=version if version == DRAFT or _number(version) else "",
            model=_clean(parameters.get("model", "")),
            tool=_clean(parameters.get("tool", "")),
            group=_number(parameters.get("group", "")) if sees_people else None,
            person=_number(parameters.get("person", "")) if sees_people else None,
        )

    def query(self) -> dict[str, str]:
        """Return the parameters of a URL that select the same."""
        values = {column.name: getattr(self, column.name) for column in fields(self)}
        return {name: str(value) for name, value in values.items() if value}

    @property
    def version_number(self) -> int:
        return 0 if self.version == DRAFT else int(self.version)

    @property
    def has_setup(self) -> bool:
        return bool(self.agent or self.version)

    @property
    def has_people(self) -> bool:
        return self.group is not None or self.person is not None

    def with_value(self, name: str, value: Any) -> "Selection":
        return replace(self, **{name: value})


class Viewer:
    """What a user may see: whose runs, whether people, and whether lists of runs."""

    def __init__(self, user: AnyUser | None) -> None:
        """Without a user, such as for a webhook, all runs count, and no links are made."""
        self.user = user
        self.sees_people = user is not None and user.has_perm(PEOPLE_PERMISSION)
        self.reviews = user is not None and user.has_perm(REVIEW_PERMISSION)
        self._terms: dict[Selection, list[str]] = {}
        self.usernames: dict[int, str] = {}  # known ones, for links
        self.list_page = reverse("trace:list")

    @cached_property
    def is_scoped(self) -> bool:
        """Whether they see only some agents' runs."""
        if self.user is None:
            return False
        return ReviewScope.objects.filter(user=self.user.pk).exists()

    def terms(self, selection: Selection) -> list[str]:
        """Return the filter of a selection, once per page: a table has hundreds of links."""
        if selection not in self._terms:
            self._terms[selection] = _terms(selection, self.usernames)
        return self._terms[selection]

    def visible_runs(self) -> RunQuerySet:
        """Return the runs that a scoped viewer sees, as a subquery."""
        return Run.objects.for_user(self.user or AnonymousUser()).order_by()


def runs_url(
    viewer: Viewer, window: Window, selection: Selection, *terms: str, sort: str = ""
) -> str:
    """Return the list of exactly the runs that are counted; empty if the viewer has none."""
    if not viewer.reviews or selection.tool == UNKNOWN_TOOL:
        return ""  # the list finds tools by their names
    filter_terms = [
        *terms,
        *viewer.terms(selection),
        "-status:live",
        "-route:imported",
        # Exact times: the list's days are those of its reader's time zone.
        f"after:{window.start.isoformat(timespec='seconds')}",
    ]
    if not window.is_open:
        filter_terms.append(f"before:{window.end.isoformat()}")
    parameters = {"q": " ".join(filter_terms)} | ({"sort": sort} if sort else {})
    return f"{viewer.list_page}?{urlencode(parameters)}"


def term(name: str, value: str) -> str:
    """Return a term of the list's filter; a leading = means exactly this."""
    plain = value.replace('"', "")
    return (
        f'{name}:"{plain}"'
        if any(sign in plain for sign in " ,、\u3000")
        else f"{name}:{plain}"
    )


def _terms(selection: Selection, usernames: Mapping[int, str]) -> list[str]:
    terms = [term("agent", selection.agent)] if selection.agent else []
    if selection.version:
        is_draft = selection.version == DRAFT
        terms.append(f"version:{DRAFT if is_draft else f'v{selection.version}'}")
    terms += [term("called", selection.model)] if selection.model else []
    terms += [term("tool", selection.tool)] if selection.tool else []
    if selection.person is not None:
        name = usernames.get(selection.person)
        if name is None:
            people = User.objects.filter(pk=selection.person)
            name = people.values_list("username", flat=True).first() or ""
        terms.append(term("user", f"={name}"))
    if selection.group is not None:
        group = Group.objects.filter(pk=selection.group).values_list("name", flat=True)
        terms.append(term("group", group.first() or ""))
    return terms


def member_ids(group: int) -> list[int]:
    """Return the people of a group; roles are no groups."""
    groups = Group.objects.filter(pk=group).exclude(name__in=Role.values)
    return list(User.objects.filter(groups__in=groups).values_list("pk", flat=True))


def _clean(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()[:MAX_CHARS].strip()


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if is_number and int(text) else None
