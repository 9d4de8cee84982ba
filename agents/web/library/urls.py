from django.urls import path

from .views import collections, documents, sharing, sitemaps, sources

app_name = "library"
urlpatterns = [
    path("library/", collections.library, name="list"),
    path("library/new/", collections.create, name="create"),
    path("library/search/", collections.search, name="search"),
    path("library/<int:pk>/", collections.collection_page, name="collection"),
    path("library/<int:pk>/edit/", collections.edit, name="edit"),
    path("library/<int:pk>/delete/", collections.delete, name="delete"),
    path("library/<int:pk>/upload/", documents.upload, name="upload"),
    path("library/<int:pk>/add/", documents.add, name="add"),
    path("library/<int:pk>/documents/delete/", documents.delete, name="delete_documents"),
    path("library/<int:pk>/accept/", sharing.accept, name="accept"),
    path("library/<int:pk>/access/", sharing.access, name="access"),
    path("library/<int:pk>/access/groups/", sharing.readers, name="readers"),
    path("library/<int:pk>/access/<int:user>/remove/", sharing.remove, name="remove"),
    path("library/<int:pk>/access/suggestions/", sharing.suggest, name="suggest"),
    path("library/documents/<int:pk>/", documents.document_page, name="document"),
    path("library/documents/<int:pk>/file/", documents.document_file, name="file"),
    path("library/documents/<int:pk>/transcript/", documents.transcript, name="transcript"),
    path("library/documents/<int:pk>/retry/", documents.retry, name="retry"),
    path("library/documents/<int:pk>/cancel/", documents.cancel, name="cancel"),
    path("library/documents/<int:pk>/schedule/", documents.schedule, name="schedule"),
    path("library/sitemaps/<int:pk>/schedule/", sitemaps.schedule, name="sitemap_schedule"),
    path("library/sitemaps/<int:pk>/fetch/", sitemaps.fetch, name="sitemap_fetch"),
    path("library/sitemaps/<int:pk>/remove/", sitemaps.remove, name="sitemap_remove"),
    path("library/<int:pk>/sources/", sources.add, name="add_source"),
    path("library/sources/<int:pk>/", sources.edit, name="edit_source"),
    path("library/sources/<int:pk>/remove/", sources.remove, name="remove_source"),
    path("library/sources/<int:pk>/<slug:action>/", sources.act, name="source"),
]
