"""Files that are sent with messages."""

from datetime import datetime
from typing import Annotated

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import File, Form, Router, Schema, UploadedFile
from pydantic import Field

from agents.db import database
from agents.knowledge.files import serving
from chat import attachments
from chat.attachments.presentation import FileView
from chat.messages.pages import upload_pages
from chat.models import Attachment

from .access import ASK, READ, RestRequest
from .idempotency import creates
from .schemas import FILE_TYPE, Text, one_of, produces

router = Router(tags=["Files"], exclude_none=True)


class NewFile(Schema):
    agent: Text = Field("", max_length=64, description="Which agent it is for.")
    model: Text = Field("", max_length=200, description="Which model, if not the agent’s.")


class FileItem(Schema):
    id: int
    name: str
    mime_type: str
    kind: Annotated[str, one_of(Attachment.Kind)]
    size: int
    state: str = Field(description="`ready`, `reading` or `failed`.", examples=["ready"])
    note: str | None = Field(None, description="What a model gets of it, or why nothing.")
    created_at: datetime


def file_item(row: Attachment) -> FileItem:
    view = FileView(row)
    return FileItem(
        id=row.pk,
        name=row.name,
        mime_type=row.mime_type,
        kind=row.kind,
        size=row.file.size,
        state=view.state,
        note=view.note or None,
        created_at=row.created_at,
    )


def _find(request: RestRequest, pk: int) -> Attachment:
    rows = Attachment.objects.for_user(request.user).select_related("file", "document")
    return get_object_or_404(rows, pk=pk)


def _read(request: RestRequest, pk: int) -> FileItem:
    return file_item(_find(request, pk))


@router.post(
    "", auth=ASK, response={201: FileItem}, operation_id="uploadFile", summary="Upload a file"
)
@creates(_read)
async def upload_file(
    request: RestRequest,
    file: File[UploadedFile],
    form: Form[NewFile],
) -> int:
    """Upload a file to send with a message. What isn’t sent is deleted after a week."""
    row = await database.run(
        upload_pages.receive, request.auth.user, file, form.agent, form.model
    )
    return row.pk


@router.get(
    "/{int:file_id}",
    auth=READ,
    response=FileItem,
    operation_id="getFile",
    summary="Read about a file",
)
def get_file(request: RestRequest, file_id: int) -> FileItem:
    """Whether it has been read yet, and what a model gets of it."""
    return _read(request, file_id)


@router.get(
    "/{int:file_id}/content",
    auth=READ,
    operation_id="downloadFile",
    summary="Download a file",
    openapi_extra=produces(FILE_TYPE),
)
def download_file(request: RestRequest, file_id: int) -> HttpResponseBase:
    row = _find(request, file_id)
    return serving.serve(
        request, row.file, name=row.name, mime_type=row.mime_type, is_download=True
    )


@router.delete(
    "/{int:file_id}",
    auth=ASK,
    response={204: None},
    operation_id="deleteFile",
    summary="Delete an unsent file",
)
def delete_file(request: RestRequest, file_id: int) -> None:
    unsent = Attachment.objects.unsent_by(request.auth.user)
    attachments.remove(request.auth.user, get_object_or_404(unsent, pk=file_id).pk)
