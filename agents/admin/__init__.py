"""The pages of Django's admin, one module a subject."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from . import access, catalog, guardrails, knowledge, llms, runs, servers, tools, workflows

__all__ = [
    "access",
    "catalog",
    "guardrails",
    "knowledge",
    "llms",
    "runs",
    "servers",
    "tools",
    "workflows",
]

admin.site.site_header = admin.site.site_title = "Ashiato"
admin.site.index_title = _("Administration")
