"""The pages *Recently deleted*, of users and of administrators, and Undo after a deletion."""

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore, DeletedRow, Kind
from agents.access.requests import UserRequest, signed_in_user

PAGE_SIZE = 50


def undo_url(keys: Iterable[str], *, is_console: bool = False) -> str:
    """Return where a form is posted that restores these rows."""
    return f"{_url('restore', is_console=is_console)}?items={','.join(keys)}"


def offer_undo(request: HttpRequest, sentence: str, *keys: str) -> None:
    """Have the next page say what was deleted, with a button that restores it."""
    messages.success(request, sentence, extra_tags=undo_url(keys))


def open_kinds(user: User, *, is_console: bool) -> list[Kind]:
    """Return the kinds of rows that this user could have deleted."""
    return [
        kind
        for kind in recently_deleted.kinds.values()
        if kind.is_console == is_console and kind.is_open_to(user)
    ]


def list_context(request: UserRequest, *, is_console: bool = False) -> dict[str, Any]:
    """Return what this user can restore, of one kind or of all."""
    kinds = open_kinds(request.user, is_console=is_console)
    entries = recently_deleted.newest(request.user, kinds)
    present = {kind for kind, _pk in entries}
    chosen = next((kind for kind in kinds if kind.name == request.GET.get("kind")), None)
    listed = [entry for entry in entries if chosen in (None, entry[0])]
    page = Paginator(listed, PAGE_SIZE).get_page(request.GET.get("p"))
    return {
        "page": page,
        "items": recently_deleted.read(page),
        "kinds": [kind for kind in kinds if kind in present],
        "chosen": chosen,
        "days": recently_deleted.KEPT_FOR.days,
        "restore_url": _url("restore", is_console=is_console),
        "erase_url": _url("erase", is_console=is_console),
    }


def restore(request: UserRequest, *, is_console: bool = False) -> HttpResponse:
    """Restore these rows; what can't be restored stays on the page, with the reason."""
    items = _find_items(request, is_console=is_console)
    name = request.POST.get("name", "").strip() if len(items) == 1 else ""
    url = ""
    is_complete = True
    for item in items:
        title = item.title
        try:
            restored = recently_deleted.restore(request.user, item.key, name)
        except ObjectDoesNotExist:  # another request was faster
            continue
        except CannotRestore as error:
            is_complete = False
            sentence = _("“%(name)s” can't be restored. %(reason)s")
            messages.error(request, sentence % {"name": title, "reason": error})
            continue
        url = restored.url
        if restored.name:
            sentence = _("“%(name)s” was restored.")
            messages.success(request, sentence % {"name": restored.name})
        for warning in restored.warnings:
            messages.warning(request, warning)
    if url and is_complete:
        return redirect(url)
    return _to_list(items[0].kind)


def erase(request: UserRequest, *, is_console: bool = False) -> HttpResponse:
    """Delete deleted rows for good."""
    items = _find_items(request, is_console=is_console)
    for item in items:
        title = item.title
        item.kind.erase_now(item.row, request.user)
        messages.success(request, _("“%(name)s” was deleted permanently.") % {"name": title})
    return _to_list(items[0].kind)


def _find_items(request: UserRequest, *, is_console: bool) -> list[DeletedRow]:
    user = signed_in_user(request)
    rows = [recently_deleted.find(user, key) for key in request.GET.get("items", "").split(",")]
    items = [row for row in rows if row is not None and row.kind.is_console == is_console]
    if not items or len(items) < len(rows):
        raise Http404
    return items


def _to_list(kind: Kind) -> HttpResponse:
    return redirect(f"{_url('list', is_console=kind.is_console)}?kind={kind.name}")


def _url(page: str, *, is_console: bool) -> str:
    names = {"list": "recently_deleted", "restore": "restore_deleted", "erase": "erase_deleted"}
    return reverse(f"{'admin' if is_console else 'people'}:{names[page]}")
