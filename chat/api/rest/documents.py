"""Collections of the library, their documents, and searching them."""

from datetime import datetime
from typing import Annotated

from django.core.files.uploadedfile import UploadedFile as DjangoFile
from django.db import transaction
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import File, Query, Router, Schema, UploadedFile
from pydantic import Field

from agents.db import database
from agents.db.sentences import translate
from agents.models import Collection, Document
from agents.web.library import deletion, events, passages, uploads
from agents.web.library.views import documents as document_pages
from agents.web.origin import origin_of

from .access import CONFIGURE, READ, RestRequest
from .idempotency import creates
from .pages import Page, PageQuery, page_of
from .schemas import FILE_TYPE, Id, Text, one_of, produces

collections = Router(tags=["Documents"], exclude_none=True)
documents = Router(tags=["Documents"], exclude_none=True)


class CollectionItem(Schema):
    id: int
    name: str
    description: str
    documents: int
    may_edit: bool
    created_at: datetime


class DocumentItem(Schema):
    id: int
    collection: int
    title: str
    name: str = Field(description="The file’s name, or the address of a web page.")
    mime_type: str
    size: int
    pages: int | None = None
    status: Annotated[str, one_of(Document.Status)]
    problem: str | None = Field(None, description="Why it can’t be read, or what is missing.")
    added_at: datetime
    indexed_at: datetime | None = Field(None, description="Absent until it can be searched.")


class PassageItem(Schema):
    document: int
    title: str
    heading: str
    text: str
    part: int = Field(description="The page, slide or sheet.")
    score: float
    url: str = Field(description="The place in the document, for people.")


class SearchQuery(Schema):
    q: Text = Field(
        min_length=1, max_length=passages.MAX_QUERY_CHARS, examples=["parental leave"]
    )
    collection: Id | None = Field(None, description="Search only this collection.")


class Found(Schema):
    passages: list[PassageItem]
    confidence: str = Field(description="How well the best passages match.")


def _visible(request: RestRequest) -> QuerySet[Collection]:
    return Collection.objects.for_user(request.user).with_page()


def _collection_item(request: RestRequest, collection: Collection) -> CollectionItem:
    editable = Collection.objects.editable_by(request.auth.user).filter(pk=collection.pk)
    return CollectionItem(
        id=collection.pk,
        name=collection.name,
        description=collection.description,
        documents=collection.documents.count(),
        may_edit=editable.exists(),
        created_at=collection.created_at,
    )


def _document_item(document: Document) -> DocumentItem:
    return DocumentItem(
        id=document.pk,
        collection=document.collection_id,
        title=document.title,
        name=document.url or document.name,
        mime_type=document.mime_type,
        size=document.size,
        pages=document.pages,
        status=document.status,
        problem=translate(document.problem) or None,
        added_at=document.added_at,
        indexed_at=document.indexed_at,
    )


def _find(request: RestRequest, pk: int) -> Document:
    visible = Document.objects.filter(collection__in=_visible(request).values("pk"))
    return get_object_or_404(visible.select_related("file"), pk=pk)


def _read(request: RestRequest, pk: int) -> DocumentItem:
    return _document_item(_find(request, pk))


@collections.get(
    "",
    auth=READ,
    response=Page[CollectionItem],
    operation_id="listCollections",
    summary="List collections",
)
def list_collections(request: RestRequest, query: Query[PageQuery]) -> Page[CollectionItem]:
    """The collections that the key’s user can read."""
    return page_of(_visible(request), query, lambda row: _collection_item(request, row))


@collections.get(
    "/{int:collection_id}",
    auth=READ,
    response=CollectionItem,
    operation_id="getCollection",
    summary="Read about a collection",
)
def get_collection(request: RestRequest, collection_id: int) -> CollectionItem:
    return _collection_item(request, get_object_or_404(_visible(request), pk=collection_id))


@collections.get(
    "/{int:collection_id}/documents",
    auth=READ,
    response=Page[DocumentItem],
    operation_id="listDocuments",
    summary="List a collection’s documents",
)
def list_documents(
    request: RestRequest, collection_id: int, query: Query[PageQuery]
) -> Page[DocumentItem]:
    collection = get_object_or_404(_visible(request), pk=collection_id)
    return page_of(collection.documents.all(), query, _document_item)


@collections.post(
    "/{int:collection_id}/documents",
    auth=CONFIGURE,
    response={201: DocumentItem},
    operation_id="uploadDocument",
    summary="Upload a document",
)
@creates(_read)
async def upload_document(
    request: RestRequest, collection_id: int, file: File[UploadedFile]
) -> int:
    """Add a file, or replace the one of the same name. It is read in the background."""
    return await database.run(_upload, request, collection_id, file)


def _upload(request: RestRequest, pk: int, file: DjangoFile) -> int:
    collection = document_pages.get_editable(request, pk)
    [document] = uploads.add_files(collection, request.auth.user, [uploads.Upload(file=file)])
    with transaction.atomic():
        events.documents_changed(collection)
    return document.pk


@documents.get(
    "/search",
    auth=READ,
    response=Found,
    operation_id="searchDocuments",
    summary="Search documents",
)
def search_documents(request: RestRequest, query: Query[SearchQuery]) -> Found:
    """Search passages by words and meaning, as the library’s page does."""
    if query.collection is not None:
        get_object_or_404(_visible(request), pk=query.collection)
    found = passages.search_page(
        request.auth.user, {"q": query.q, "collection": str(query.collection or "")}
    )
    hits = [(hit["passage"], hit["url"]) for hit in found.hits]
    return Found(
        passages=[
            PassageItem(
                document=passage.document,
                title=passage.title,
                heading=passage.heading,
                text=passage.text,
                part=passage.part,
                score=passage.score,
                url=f"{origin_of(request)}{url}",
            )
            for passage, url in hits
        ],
        confidence=found.confidence,
    )


@documents.get(
    "/{int:document_id}",
    auth=READ,
    response=DocumentItem,
    operation_id="getDocument",
    summary="Read about a document",
)
def get_document(request: RestRequest, document_id: int) -> DocumentItem:
    """Whether it has been read yet, and what is missing in it."""
    return _read(request, document_id)


@documents.get(
    "/{int:document_id}/content",
    auth=READ,
    operation_id="downloadDocument",
    summary="Download a document",
    openapi_extra=produces(FILE_TYPE),
)
def download_document(request: RestRequest, document_id: int) -> HttpResponseBase:
    """The original, if it was a file."""
    _find(request, document_id)
    return document_pages.document_file(request, document_id)


@documents.delete(
    "/{int:document_id}",
    auth=CONFIGURE,
    response={204: None},
    operation_id="deleteDocument",
    summary="Delete a document",
)
def delete_document(request: RestRequest, document_id: int) -> None:
    """Delete it from its collection. It can be restored on the page *Recently deleted*."""
    document = _find(request, document_id)
    collection = document_pages.get_editable(request, document.collection_id)
    deletion.delete_documents(collection, [document], request.auth.user)
