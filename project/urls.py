from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from django.views.i18n import set_language

urlpatterns = [
    path("", include("chat.urls")),
    path("", include("agents.review.urls")),
    path("", include("agents.workflows.urls")),
    path("", include("agents.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("language/", login_not_required(set_language), name="set_language"),
    path("admin/", admin.site.urls),
]
