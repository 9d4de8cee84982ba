"""What a user does with chats in their own list: pin, archive, put into folders."""

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db.fast_writes import update
from agents.db.sanitize import sanitize_line
from chat.models import ChatSession, Filing, Folder

MAX_FOLDERS = 100
MAX_NAME_CHARS = 60


class FilingRejected(Exception):
    """Raised when a folder can't be created or renamed; the user sees the reason."""


def pin(user: User, chats: Collection[int]) -> list[int]:
    return _file(user, chats, pinned_at=timezone.now())


def unpin(user: User, chats: Collection[int]) -> list[int]:
    return _file(user, chats, pinned_at=None)


def archive(user: User, chats: Collection[int]) -> list[int]:
    return _file(user, chats, archived_at=timezone.now())


def unarchive(user: User, chats: Collection[int]) -> list[int]:
    return _file(user, chats, archived_at=None)


def move(user: User, chats: Collection[int], folder: Folder | None) -> list[int]:
    """Put chats into a folder, or back into the list; a pin would hide where they went."""
    return _file(user, chats, folder=folder, pinned_at=None)


def bring_back(session: ChatSession, user: User) -> None:
    """Take a chat out of the archive because its user writes in it again."""
    update(Filing, {"archived_at": None}, session=session.pk, user=user.pk)


def _file(user: User, chats: Collection[int], **change: Any) -> list[int]:
    """Change where these chats are in the user's list; return those they can see."""
    visible = ChatSession.objects.for_user(user).saved().filter(pk__in=chats)
    with transaction.atomic():
        pks = list(visible.order_by().values_list("pk", flat=True))
        rows = [Filing(session_id=pk, user=user) for pk in pks]
        Filing.objects.bulk_create(rows, ignore_conflicts=True)
        Filing.objects.filter(user=user, session__in=pks).update(**change)
    return pks


def folders(user: User) -> QuerySet[Folder]:
    return Folder.objects.filter(user=user)


def create_folder(user: User, name: str) -> Folder:
    """Create a folder, or return the one with this name; raise FilingRejected."""
    name = _clean_name(name)
    if (same := folders(user).filter(name=name).first()) is not None:
        return same
    if folders(user).count() >= MAX_FOLDERS:
        sentence = _("You've reached the limit of %(most)d folders. Delete one first.")
        raise FilingRejected(sentence % {"most": MAX_FOLDERS})
    last = folders(user).aggregate(last=Max("order"))["last"] or 0
    return Folder.objects.create(user=user, name=name, order=last + 1)


def rename_folder(folder: Folder, name: str) -> None:
    """Rename a folder; raise FilingRejected."""
    name = _clean_name(name)
    if folders(folder.user).filter(name=name).exclude(pk=folder.pk).exists():
        sentence = _("You already have a folder named “%(name)s”.")
        raise FilingRejected(sentence % {"name": name})
    folder.name = name
    folder.save(update_fields=["name"])


def shift_folder(folder: Folder, steps: int) -> None:
    """Move a folder up (-1) or down (1) in the list."""
    with transaction.atomic():
        ordered = list(folders(folder.user).select_for_update())
        index = ordered.index(folder)
        ordered.insert(max(0, index + steps), ordered.pop(index))
        for position, row in enumerate(ordered, 1):
            row.order = position
        Folder.objects.bulk_update(ordered, ["order"])


def _clean_name(name: str) -> str:
    name = sanitize_line(name)[:MAX_NAME_CHARS]
    if not name:
        raise FilingRejected(_("Enter a name for the folder."))
    return name
