"""Tools for the web: a search by a configured service, and reading pages."""

from .read_page import Page, PageReader, ReadPageTool
from .search_services import SearchService, ServiceName, WebResult
from .web_search import WebSearchTool

__all__ = [
    "Page",
    "PageReader",
    "ReadPageTool",
    "SearchService",
    "ServiceName",
    "WebResult",
    "WebSearchTool",
]
