"""The documents of a collection inside the admin console."""

from django.contrib import admin
from django.urls import URLPattern, path

from .views import collections


def urls(site: admin.AdminSite) -> list[URLPattern]:
    view = site.admin_view(collections.console_collection)
    return [path("<int:pk>/documents/", view, name="agents_collection_documents")]
