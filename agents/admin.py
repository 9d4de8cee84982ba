"""Registers the pages of `agents.console` with Django's admin."""

from agents.console.activity import knowledge
from agents.web.library import console_pages

knowledge.document_pages.append(console_pages.urls)
