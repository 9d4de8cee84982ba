"""The products that chats are imported from, one row each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.models.types import LazyText
from chat.transfer.imports.values import NotImportable, Problem, SourceChat

from . import ashiato, chatgpt, claude, librechat, open_webui


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFormat:
    """The export of a product, and how a user gets one."""

    name: str
    how_to_export: LazyText
    read: Callable[[dict[str, Any]], SourceChat | None]  # None if it isn't this format


FORMATS = (
    ImportFormat(
        name=chatgpt.NAME,
        how_to_export=_(
            "Settings → Data controls → Export data. The link to the ZIP arrives by email."
        ),
        read=chatgpt.read,
    ),
    ImportFormat(
        name=claude.NAME,
        how_to_export=_("Settings → Privacy → Export data."),
        read=claude.read,
    ),
    ImportFormat(
        name=librechat.NAME,
        how_to_export=_("In a chat: Export → JSON, with all branches. One file per chat."),
        read=librechat.read,
    ),
    ImportFormat(
        name=open_webui.NAME,
        how_to_export=_("Settings → Data controls → Export chats."),
        read=open_webui.read,
    ),
    ImportFormat(
        name=ashiato.NAME,
        how_to_export=_("In a chat: Export → JSON, or Download my data."),
        read=ashiato.read,
    ),
)


def read(value: Any) -> SourceChat:
    """Return a chat of any known format; raise NotImportable."""
    if isinstance(value, dict):
        for each in FORMATS:
            if (chat := each.read(value)) is not None:
                return chat
    raise NotImportable(Problem.NOT_A_CHAT)
