from django.urls import path

from . import pages

app_name = "dashboard"
urlpatterns = [
    path("admin/dashboard/", pages.overview, name="overview"),
    path("admin/dashboard/<slug:name>.csv", pages.export, name="export"),
    path("admin/dashboard/versions/", pages.version_comparison, name="versions"),
]
