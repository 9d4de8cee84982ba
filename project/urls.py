from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path

from agents.accounts.views import profile, sign_in
from agents.web.branding import pages as branding
from chat.api import docs_page
from chat.api.a2a.public_card import public_card

handler400 = "agents.web.error_pages.bad_request"
handler403 = "agents.web.error_pages.forbidden"
handler404 = "agents.web.error_pages.not_found"
handler500 = "agents.web.error_pages.server_error"

urlpatterns = [
    path("", include("chat.urls")),
    path("", include("agents.review.urls")),
    path("", include("agents.web.workflows.urls")),
    path("", include("agents.web.library.urls")),
    path("", include("agents.urls")),
    path("login/", sign_in.sign_in, name="login"),
    path("logout/", sign_in.sign_out, name="logout"),
    path("", include("agents.accounts.urls")),
    path("", include("agents.insight.alerts.urls")),
    path("language/", login_not_required(profile.set_language), name="set_language"),
    path("", include(branding.urls)),
    path("", include("agents.insight.dashboard.urls")),
    path(".well-known/agent-card.json", public_card, name="agent_card"),
    path("api/docs/", docs_page.docs, name="api_docs"),
    path("admin/", admin.site.urls),
]
