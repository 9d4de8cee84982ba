"""The API's routers, put together by the first request."""

import json
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from agents.web.api_errors import ApiError

from . import (
    agents,
    approvals,
    chats,
    document,
    documents,
    events,
    experiments,
    feedback,
    files,
    me,
    problems,
    runs,
    traces,
    workflows,
)
from .access import ANY


class JsonParser(Parser):
    """Parses bodies that say they are JSON, which is checked before they are validated."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise ApiError(
                415,
                _("Send JSON, with “Content-Type: application/json”."),
                "unsupported_media_type",
            )
        return json.loads(request.body, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} isn't JSON.")


class RestApi(NinjaAPI):
    """ninja's API with our errors, and with what the document says beyond the signatures."""

    def set_default_exception_handlers(self) -> None:
        problems.install(self)

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(path_prefix="")
        document.complete(schema, self)
        return schema


api = RestApi(
    title="Ashiato",
    version="1",
    description=document.INTRODUCTION,
    # The document and its page are our own views: ninja's page would load scripts from a CDN.
    openapi_url=None,
    docs_url=None,
    urls_namespace="rest",
    auth=ANY,
    parser=JsonParser(),
)
api.add_router("/chats", chats.router)
api.add_router("/files", files.router)
api.add_router("/runs", runs.router)
api.add_router("/runs", events.router)
api.add_router("/runs", feedback.router)
api.add_router("", traces.router)
api.add_router("/approvals", approvals.router)
api.add_router("/agents", agents.router)
api.add_router("/workflows", workflows.router)
api.add_router("/collections", documents.collections)
api.add_router("/documents", documents.documents)
api.add_router("/example-sets", experiments.sets)
api.add_router("/experiments", experiments.experiments)
api.add_router("", me.router)
