"""The export formats of the products that chats are imported from."""

from collections.abc import Callable
from typing import Any

from chat.imports.values import NotImportable, Problem, SourceChat

from . import ashiato, chatgpt, claude, librechat, open_webui

# Each returns None if the value isn't its own format. The most distinctive one is first.
READERS: tuple[Callable[[dict[str, Any]], SourceChat | None], ...] = (
    ashiato.read,
    chatgpt.read,
    claude.read,
    librechat.read,
    open_webui.read,
)
NAMES = (ashiato.NAME, chatgpt.NAME, claude.NAME, librechat.NAME, open_webui.NAME)


def read(value: Any) -> SourceChat:
    """Return a chat of any known format; raise NotImportable."""
    if isinstance(value, dict):
        for reader in READERS:
            if (chat := reader(value)) is not None:
                return chat
    raise NotImportable(Problem.NOT_A_CHAT)
