"""The rows of chats: what is saved, and who sees it."""

from .attachments import Attachment
from .imports import ChatImport, ImportedChat, ImportResult
from .links import PublicLink
from .prompts import SHARE_PERMISSION, Prompt, sharable_groups
from .sessions import (
    BranchPosition,
    ChatSession,
    Filing,
    Folder,
    Invitation,
    Member,
    Message,
    RemovedMember,
    UserOrPk,
)

__all__ = [
    "SHARE_PERMISSION",
    "Attachment",
    "BranchPosition",
    "ChatImport",
    "ChatSession",
    "Filing",
    "Folder",
    "ImportResult",
    "ImportedChat",
    "Invitation",
    "Member",
    "Message",
    "Prompt",
    "PublicLink",
    "RemovedMember",
    "UserOrPk",
    "sharable_groups",
]
