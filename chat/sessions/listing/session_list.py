"""Lists a user's chats: pinned, in folders, and by when they were last used."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from agents.access.names import display_name
from agents.db.compiled_queries import compiled_query
from agents.db.installation import configured
from agents.db.sanitize import parse_id
from agents.models import Membership, Run
from chat.models import ChatSession, Folder

MAX_SESSIONS = 100  # at once; earlier ones are loaded while scrolling
MAX_FILED = 300

OWNER_NAME = Coalesce(
    NullIf("user__profile__display_name", Value("")), "user__username", output_field=CharField()
)

Runs = Mapping[str, Run]
OwnColumns = tuple[datetime, int, str, bool, datetime | None, int | None, str | None]
SharedColumns = tuple[datetime, int, str, bool, str]


class Outline(NamedTuple):
    """What the list shows of a chat."""

    used: datetime
    pk: int
    title: str
    is_shared: bool
    whose: str = ""
    pinned_at: datetime | None = None
    folder: int | None = None
    public_until: datetime | None = None
    project: int | None = None
    project_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A row of the list: what its template needs, at a tenth of a model's cost."""

    pk: int
    title: str
    updated_at: datetime
    is_shared: bool
    is_public: bool
    is_pinned: bool
    whose: str
    live: Run | None


class FolderOutline(NamedTuple):
    pk: int
    name: str
    is_collapsed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading of the list with its chats."""

    heading: str
    rows: list[ListedSession]
    folder: FolderOutline | None = None
    is_first_folder: bool = False
    project: int | None = None
    is_first_project: bool = False


@dataclass(frozen=True, slots=True)
class SessionList:
    """A user's list: filed chats, and the newest of the others."""

    folders: list[FolderOutline] = field(default_factory=list)
    filed: list[Outline] = field(default_factory=list)
    recent: list[Outline] = field(default_factory=list)
    has_more: bool = False

    @property
    def every(self) -> list[Outline]:
        return [*self.filed, *self.recent]

    def layout(self) -> list[object]:
        """Return what decides the list's structure and order."""
        starts = day_starts()
        days = [(row.pk, _period(row.used, starts), row.project_name) for row in self.recent]
        filed = [(row.pk, bool(row.pinned_at), row.folder) for row in self.filed]
        return [*self.folders, *filed, *days]

    def renamed(self, pk: int, title: str) -> "SessionList":
        """Return the list with a chat's new title."""
        filed, recent = (
            [row._replace(title=title) if row.pk == pk else row for row in rows]
            for rows in (self.filed, self.recent)
        )
        return replace(self, filed=filed, recent=recent)

    def used_now(self, pk: int) -> "SessionList | None":
        """Return the list with this chat at the top; None if it isn't a recent one."""
        for row in self.recent:
            if row.pk == pk:
                others = [other for other in self.recent if other.pk != pk]
                return replace(self, recent=[row._replace(used=timezone.now()), *others])
        return None

    @property
    def cursor(self) -> str:
        """Return where older chats continue; empty if there are none."""
        last = self.recent[-1] if self.has_more else None
        return f"{last.used.isoformat()},{last.pk}" if last else ""


def read(user: User) -> SessionList:
    """Read a user's list; the filed chats and folders are few."""
    filed = []
    for used, pk, title, is_shared, owner, name, pinned_at, folder, until in _filed(user.pk):
        if owner == user.pk:
            row = Outline(used, pk, title, is_shared, "", pinned_at, folder, until)
        else:
            row = Outline(used, pk, title, is_shared, name, pinned_at, folder)
        filed.append(row)
    pinned = [row for row in filed if row.pinned_at]
    pinned.sort(key=lambda row: (row.pinned_at, row.pk), reverse=True)
    in_folders = [row for row in filed if not row.pinned_at]
    folders = [FolderOutline(*row) for row in _folder_rows(user.pk)]
    recent = _merge(_own(user.pk), _shared(user.pk))
    has_more = len(recent) > MAX_SESSIONS
    return SessionList(folders, [*pinned, *in_folders], recent[:MAX_SESSIONS], has_more)


def _merge(own: Iterable[OwnColumns], shared: Iterable[SharedColumns]) -> list[Outline]:
    """Return the user's own chats and shared ones, the last used first."""
    rows = [Outline(*columns) for columns in shared]
    for used, pk, title, is_shared, until, project, name in own:
        row = Outline(
            used,
            pk,
            title,
            is_shared,
            public_until=until,
            project=project,
            project_name=name or "",
        )
        rows.append(row)
    rows.sort(reverse=True)
    return rows


@compiled_query
def _folder_rows(user: int) -> QuerySet[Folder, tuple[int, str, bool]]:
    return Folder.objects.filter(user=user).values_list("pk", "name", "is_collapsed")


# One more than is displayed, to know whether there are older ones.
@compiled_query
def _own(user: int) -> QuerySet[ChatSession, OwnColumns]:
    return _own_outlines(user)[: MAX_SESSIONS + 1]


@compiled_query
def _shared(user: int) -> QuerySet[ChatSession, SharedColumns]:
    return _shared_outlines(user)[: MAX_SESSIONS + 1]


def _own_outlines(user: int) -> QuerySet[ChatSession, OwnColumns]:
    sessions = ChatSession.objects.owned_by(user).unfiled_by(user)
    return sessions.values_list(
        "updated_at",
        "pk",
        "title",
        "is_shared",
        "public_until",
        "project_id",
        "project__name",
    )


def _shared_outlines(user: int) -> QuerySet[ChatSession, SharedColumns]:
    sessions = ChatSession.objects.shared_with(user).unfiled_by(user)
    return sessions.values_list("updated_at", "pk", "title", "is_shared", OWNER_NAME)


@compiled_query
def _filed(user: int) -> QuerySet[ChatSession, tuple[Any, ...]]:
    is_filed = Q(filings__pinned_at__isnull=False) | Q(filings__folder__isnull=False)
    in_list = Q(filings__user=user, filings__archived_at__isnull=True) & is_filed
    sessions = ChatSession.objects.for_user(user).saved().filter(in_list)
    return sessions.values_list(
        "updated_at",
        "pk",
        "title",
        "is_shared",
        "user_id",
        OWNER_NAME,
        "filings__pinned_at",
        "filings__folder",
        "public_until",
    )[:MAX_FILED]


def older(user: User, cursor: str) -> SessionList:
    """Return the chats that follow the cursor; an invalid one has none."""
    used_text, _comma, pk_text = cursor.partition(",")
    used = _parse_moment(used_text)
    pk = parse_id(pk_text)
    if used is None or pk is None:
        return SessionList()
    is_older = Q(updated_at__lt=used) | Q(updated_at=used, pk__lt=pk)
    own = _own_outlines(user.pk).filter(is_older)[: MAX_SESSIONS + 1]
    shared = _shared_outlines(user.pk).filter(is_older)[: MAX_SESSIONS + 1]
    rows = _merge(own, shared)
    return SessionList([], [], rows[:MAX_SESSIONS], len(rows) > MAX_SESSIONS)


def _parse_moment(text: str) -> datetime | None:
    """Return a moment with its time zone, or None if the text has none."""
    try:
        moment = parse_datetime(text) if len(text) < 64 else None
    except ValueError:  # well formed, but no such day
        return None
    return moment if moment is not None and timezone.is_aware(moment) else None


def archived(user: User) -> list[ChatSession]:
    """Return the chats this user has archived, the last one first."""
    in_archive = Q(filings__user=user, filings__archived_at__isnull=False)
    sessions = ChatSession.objects.for_user(user).saved().filter(in_archive)
    sessions = sessions.select_related("user__profile")
    rows = list(sessions.order_by(F("filings__archived_at").desc(), "-pk")[:MAX_FILED])
    live = live_runs(user)
    for row in rows:
        row.live = live.get(row.topic)
        row.whose = "" if row.user_id == user.pk else display_name(row.user)
    return rows


def sections(listed: SessionList, live: Runs) -> list[Section]:
    """Return the list under its headings."""
    filed = [(row, session_row(row, live)) for row in listed.filed]
    pinned = [chat for row, chat in filed if row.pinned_at]
    in_order = [Section(heading=_("Pinned"), rows=pinned)] if pinned else []
    # The projects of recent chats by name; a project's own page lists all its chats.
    projects = sorted({(row.project_name, row.project) for row in listed.recent if row.project})
    for index, (name, pk) in enumerate(projects):
        rows = [session_row(row, live) for row in listed.recent if row.project == pk]
        in_order.append(
            Section(heading=name, rows=rows, project=pk, is_first_project=index == 0)
        )
    for index, folder in enumerate(listed.folders):
        rows = [chat for row, chat in filed if row.folder == folder.pk and not row.pinned_at]
        in_order.append(
            Section(heading=folder.name, rows=rows, folder=folder, is_first_folder=index == 0)
        )
    recent = (row for row in listed.recent if row.project is None)
    return in_order + by_day(session_row(row, live) for row in recent)


def by_day(rows: Iterable[ListedSession]) -> list[Section]:
    """Group chats by when they were last used."""
    starts = day_starts()
    headings = _headings()
    days = groupby(rows, lambda row: _period(row.updated_at, starts))
    return [Section(heading=headings[day], rows=list(group)) for day, group in days]


def older_by_day(rows: Iterable[ListedSession], cursor: str) -> list[Section]:
    """Group the chats that follow a cursor; the first heading may already be in the list."""
    days = by_day(rows)
    last = _parse_moment(cursor.partition(",")[0])
    if days and last and days[0].heading == _headings()[_period(last, day_starts())]:
        days[0] = replace(days[0], heading="")
    return days


def _headings() -> list[str]:
    return [
        _("Today"),
        _("Yesterday"),
        _("Previous 7 days"),
        _("Previous 30 days"),
        _("Earlier"),
    ]


def _period(used: datetime, starts: Sequence[datetime]) -> int:
    return sum(used < start for start in starts)


def session_row(outline: Outline, live: Runs) -> ListedSession:
    until = outline.public_until
    is_public = until is not None and until > timezone.now() and configured.PUBLIC_LINKS.value
    return ListedSession(
        pk=outline.pk,
        title=outline.title,
        updated_at=outline.used,
        is_shared=outline.is_shared,
        is_public=is_public,
        is_pinned=outline.pinned_at is not None,
        whose=outline.whose,
        live=live.get(f"chat.{outline.pk}"),
    )


def day_starts() -> list[datetime]:
    """Return when the periods of the list's headings start, in the zone of a chat's times.

    Every chat is compared with each, and across zones that takes several times as long.
    """
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return [(today - timedelta(days=days)).astimezone(UTC) for days in (0, 1, 7, 30)]


def live_runs(user: User) -> Runs:
    """Return live runs in the user's chats, by topic."""
    return {run.topic: run for run in _live_runs(user.pk)}


@compiled_query
def _live_runs(user: int) -> QuerySet[Run]:
    shared = Membership.objects.filter(user=user).order_by().values("topic")
    runs = Run.objects.live().filter(Q(user=user) | Q(topic__in=shared))
    return runs.order_by().only("topic", "status")
