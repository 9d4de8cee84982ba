"""The pages of Django's admin, one module a subject."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from . import access, audit, catalog, guardrails, knowledge, runs, servers, tools, workflows

__all__ = [
    "access",
    "audit",
    "catalog",
    "guardrails",
    "knowledge",
    "runs",
    "servers",
    "tools",
    "workflows",
]

admin.site.site_header = admin.site.site_title = "Ashiato"
admin.site.index_title = _("Administration")
