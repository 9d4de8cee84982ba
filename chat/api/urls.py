"""The addresses that programs call, apart from those of pages: loaded by the first call."""

from django.conf import settings
from django.urls import include, path

handler400 = "agents.web.error_pages.bad_request"
handler403 = "agents.web.error_pages.forbidden"
handler404 = "agents.web.error_pages.not_found"
handler500 = "agents.web.error_pages.server_error"

urlpatterns = [
    path("api/v1/", include("chat.api.rest.urls")),
    path("v1/", include("chat.api.openai.urls")),
    path("a2a/", include("chat.api.a2a.urls")),
    path("ag-ui/", include("chat.api.ag_ui.urls")),
    # Responses and runs link to pages.
    path("", include(settings.ROOT_URLCONF)),
]
