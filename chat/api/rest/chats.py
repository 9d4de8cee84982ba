"""Chats and their messages."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db import transaction
from django.db.models import F, FilteredRelation, Q, QuerySet
from django.http import Http404, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.access import recently_deleted
from agents.db import database
from agents.models import ApiKey, Run
from agents.web.api_errors import ApiError
from agents.web.origin import origin_of
from chat import attachments
from chat.api import calls
from chat.models import ChatSession, Message
from chat.sessions import branches, conversation, deletion, rights, session_state, titles
from chat.sessions.listing import filing, search, session_list
from chat.sessions.listing.session_list import Runs
from chat.transfer.exports import export_pages

from .access import ASK, READ, RestRequest
from .etags import check_unchanged, tagged
from .files import FileItem, file_item
from .idempotency import client_id, creates
from .pages import Page, PageQuery, page_of, to_page
from .reading import RunItem, run_item
from .runs import Options
from .schemas import Input, SentId, Switch, Text, example, one_of, produces

router = Router(tags=["Chats"], exclude_none=True)

MAX_TITLE_CHARS = 80
MAX_FILES = 100


class LiveRun(Schema):
    id: int
    status: Annotated[str, one_of(Run.Status)]


class ChatItem(Schema):
    id: int
    title: str
    owner: str
    may_write: bool
    is_shared: bool
    is_pinned: bool
    is_archived: bool
    project: int | None = None
    live_run: LiveRun | None = Field(None, description="The run that answers now, if any.")
    created_at: datetime
    updated_at: datetime = Field(description="When it was last used.")
    url: str = Field(description="Its page, for people.")


class MessageItem(Schema):
    """A message and the run that answers it."""

    id: int
    chat: int
    author: str
    text: str
    files: list[FileItem]
    run: RunItem | None = None
    answer: str | None = None
    is_queued: bool = Field(description="Whether it waits for the run before it.")
    created_at: datetime


class StartedChat(ChatItem):
    message: MessageItem


class ChatQuery(PageQuery):
    search: Text = Field(
        "",
        max_length=search.MAX_QUERY_CHARS,
        description="Words in titles, messages and answers. The best matches, on one page.",
    )
    is_archived: bool | None = None
    is_pinned: bool | None = None


class NewMessage(Input):
    model_config = example(text="What is 6 * 7?")

    text: Text = Field("", examples=["What is 6 * 7?"], description="Can be empty with files.")
    agent: Text = Field("", max_length=64, description="By default, the chat’s agent.")
    options: Options = Field(default_factory=Options.model_construct)
    files: list[SentId] = Field(
        default_factory=list,
        max_length=MAX_FILES,
        description="Uploaded files to send with it.",
    )


class NewChat(NewMessage):
    """The first message of a chat."""

    project: SentId | None = Field(None, description="The project to start it in.")


class NextMessage(NewMessage):
    queue: Switch = Field(
        False, description="Whether it may wait until the chat’s live run has ended."
    )


class ChatChanges(Input):
    """What to change; fields that are absent stay."""

    title: Text = Field("", min_length=1, max_length=MAX_TITLE_CHARS)
    is_pinned: Switch = False
    is_archived: Switch = False


def _visible(request: RestRequest) -> QuerySet[ChatSession]:
    user = request.auth.user
    filed = FilteredRelation("filings", condition=Q(filings__user=user))
    chats = ChatSession.objects.for_user(user).select_related("user")
    return chats.annotate(
        filed=filed, pinned=F("filed__pinned_at"), archived=F("filed__archived_at")
    )


def _chat_fields(request: RestRequest, chat: ChatSession, live_runs: Runs) -> dict[str, Any]:
    live = live_runs.get(chat.topic)
    path = reverse("chat:session", args=[chat.pk])
    return {
        "id": chat.pk,
        "title": chat.title,
        "owner": chat.user.get_username(),
        "may_write": rights.may_write(chat, request.auth.user),
        "is_shared": chat.is_shared,
        "is_pinned": vars(chat)["pinned"] is not None,
        "is_archived": vars(chat)["archived"] is not None,
        "project": chat.project_id,
        "live_run": LiveRun(id=live.pk, status=live.status) if live else None,
        "created_at": chat.created_at,
        "updated_at": chat.updated_at,
        "url": f"{origin_of(request)}{path}",
    }


def _chat_item(request: RestRequest, live_runs: Runs, chat: ChatSession) -> ChatItem:
    return ChatItem(**_chat_fields(request, chat, live_runs))


def _read_chat(request: RestRequest, pk: int) -> ChatItem:
    chat = get_object_or_404(_visible(request), pk=pk)
    return _chat_item(request, session_list.live_runs(request.auth.user), chat)


def _message_item(request: RestRequest, message: Message) -> MessageItem:
    run = message.run
    files = attachments.sent_with(message.pk) if message.has_files else ()
    return MessageItem(
        id=message.pk,
        chat=message.session_id,
        author=message.author.get_username(),
        text=message.text,
        files=[file_item(row) for row in files],
        run=None if run is None else run_item(request, run),
        answer=run.answer or None if run else None,
        is_queued=message.is_queued,
        created_at=message.created_at,
    )


def _read_message(request: RestRequest, pk: int) -> MessageItem:
    visible = ChatSession.objects.for_user(request.auth.user)
    messages = Message.objects.filter(session__in=visible).select_related("author", "run__user")
    return _message_item(request, get_object_or_404(messages, pk=pk))


def read_started(request: RestRequest, pk: int) -> StartedChat:
    message = _read_message(request, pk)
    chat = get_object_or_404(_visible(request), pk=message.chat)
    live_runs = session_list.live_runs(request.auth.user)
    return StartedChat(**_chat_fields(request, chat, live_runs), message=message)


@router.get(
    "", auth=READ, response=Page[ChatItem], operation_id="listChats", summary="List chats"
)
def list_chats(request: RestRequest, query: Query[ChatQuery]) -> Page[ChatItem]:
    """The user’s chats and those shared with them, without temporary ones; newest first."""
    chats = _visible(request).filter(is_temporary=False)
    for name, value in (("archived", query.is_archived), ("pinned", query.is_pinned)):
        if value is not None:
            chats = chats.filter(**{f"{name}__isnull": not value})
    live_runs = session_list.live_runs(request.auth.user)
    to_item = partial(_chat_item, request, live_runs)
    if not query.search.strip():
        return page_of(chats, query, to_item)
    best = [found.row.pk for found in search.search(request.auth.user, query.search)]
    rows = chats.in_bulk(best)
    listed = [rows[pk] for pk in best if pk in rows][: query.limit]
    return Page(items=[to_item(chat) for chat in listed], next_cursor=None)


@router.post(
    "", auth=ASK, response={201: StartedChat}, operation_id="startChat", summary="Start a chat"
)
@creates(read_started)
async def start_chat(request: RestRequest, data: NewChat) -> int:
    """Start a chat with its first message. The response doesn’t wait for the answer."""
    message = await calls.send(
        request.auth,
        None,
        data.text,
        client_id=client_id(request),
        agent=data.agent,
        options=data.options.chosen,
        files=data.files,
        project=data.project,
    )
    return message.pk


@router.get(
    "/{int:chat_id}",
    auth=READ,
    response=ChatItem,
    operation_id="getChat",
    summary="Read a chat",
)
def get_chat(
    request: RestRequest, response: HttpResponse, chat_id: int
) -> ChatItem | HttpResponseNotModified:
    return tagged(request, response, _read_chat(request, chat_id))


@router.patch(
    "/{int:chat_id}",
    auth=ASK,
    response=ChatItem,
    operation_id="changeChat",
    summary="Rename, pin or archive a chat",
)
def change_chat(
    request: RestRequest, response: HttpResponse, chat_id: int, data: ChatChanges
) -> ChatItem | HttpResponseNotModified:
    """Pins and the archive are the user’s own; only the owner can rename a chat."""
    request.auth.require(ApiKey.Scope.READ)  # the response says what the chat is
    user = request.auth.user
    changed = data.model_fields_set
    with transaction.atomic():
        chat = get_object_or_404(_visible(request), pk=chat_id)
        session_state.lock(chat)
        check_unchanged(request, _read_chat(request, chat_id))
        if "title" in changed:
            if chat.user_id != user.pk:
                raise PermissionDenied(_("Only its owner can rename a chat."))
            titles.rename(chat, data.title)
        if "is_pinned" in changed:
            (filing.pin if data.is_pinned else filing.unpin)(user, [chat_id])
        if "is_archived" in changed:
            (filing.archive if data.is_archived else filing.unarchive)(user, [chat_id])
    deletion.announce(deletion.watchers(chat) if "title" in changed else [user.pk])
    return tagged(request, response, _read_chat(request, chat_id))


@router.delete(
    "/{int:chat_id}",
    auth=ASK,
    response={204: None},
    operation_id="deleteChat",
    summary="Delete a chat",
)
async def delete_chat(request: RestRequest, chat_id: int) -> None:
    """Delete a chat of one’s own; its run is stopped. It can be restored for a while."""
    own = ChatSession.objects.owned_by(request.auth.user)
    await deletion.delete(await database.run(get_object_or_404, own, pk=chat_id))


@router.post(
    "/{int:chat_id}/restore",
    auth=ASK,
    response=ChatItem,
    operation_id="restoreChat",
    summary="Restore a deleted chat",
)
def restore_chat(request: RestRequest, chat_id: int) -> ChatItem:
    request.auth.require(ApiKey.Scope.READ)
    try:
        recently_deleted.restore(request.auth.user, f"chat:{chat_id}")
    except ObjectDoesNotExist:
        raise Http404 from None
    return _read_chat(request, chat_id)


@router.get(
    "/{int:chat_id}/messages",
    auth=READ,
    response=Page[MessageItem],
    operation_id="listMessages",
    summary="List a chat’s messages",
)
def list_messages(
    request: RestRequest, chat_id: int, query: Query[PageQuery]
) -> Page[MessageItem]:
    """The messages of the branch on the user’s page with their answers, oldest first."""
    chat = get_object_or_404(ChatSession.objects.for_user(request.auth.user), pk=chat_id)
    path = [
        pk for pk in branches.visible_path(chat, request.auth.user) if pk > (query.last or 0)
    ]
    messages = list(conversation.messages_by_pk(path[: query.limit + 1]))
    return to_page(messages, query, lambda row: _message_item(request, row), lambda row: row.pk)


@router.post(
    "/{int:chat_id}/messages",
    auth=ASK,
    response={201: MessageItem},
    operation_id="sendMessage",
    summary="Send a message",
)
@creates(_read_message)
async def send_message(request: RestRequest, chat_id: int, data: NextMessage) -> int:
    """Send a message; 409 while the chat’s last one is being answered, unless it may wait."""
    chats = request.auth.continued_chats()
    chat = await database.run(get_object_or_404, chats, pk=chat_id)
    live = await database.run(session_state.live_run, chat)
    if live is not None and not data.queue:
        raise ApiError(
            409,
            _("This chat is still being answered. Wait for its run, stop it, or queue this."),
            "run_in_progress",
            run=live.pk,
        )
    message = await calls.send(
        request.auth,
        chat,
        data.text,
        client_id=client_id(request),
        agent=data.agent,
        options=data.options.chosen,
        files=data.files,
    )
    return message.pk


@router.get(
    "/{int:chat_id}/export.{ending}",
    auth=READ,
    operation_id="exportChat",
    summary="Export a chat",
    openapi_extra=produces("application/json", "text/markdown"),
)
def export_chat(
    request: RestRequest, chat_id: int, ending: Literal["json", "md"]
) -> HttpResponseBase:
    """As JSON (docs/chat-schema.md) with all branches and steps, or as Markdown."""
    return export_pages.export(request, chat_id, ending)
