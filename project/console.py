from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class Console(admin.AdminSite):
    """Django's admin with our own menu and pages.

    They are fetched late: pages are registered with the site, so it has to be there first.
    """

    site_header = site_title = "Ashiato"
    index_title = _("Administration")

    def get_urls(self) -> list[Any]:
        from agents.admin import menu

        return [*menu.urls(self), *super().get_urls()]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        from agents.admin import menu

        found = super().get_app_list(request, app_label)
        return found if app_label else menu.sorted_by_use(found, request)
