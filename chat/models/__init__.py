"""The rows of chats: what is saved, and who sees it."""

from .api_requests import ApiRequest
from .attachments import Attachment
from .imports import ChatImport, ImportedChat, ImportResult
from .links import PublicLink
from .messages import BranchPosition, Message
from .prompts import SHARE_PERMISSION, Prompt, sharable_groups
from .sessions import (
    ChatSession,
    Filing,
    Folder,
    Invitation,
    Member,
    RemovedMember,
    UserOrPk,
)

__all__ = [
    "SHARE_PERMISSION",
    "ApiRequest",
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
