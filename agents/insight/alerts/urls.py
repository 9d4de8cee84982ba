from django.urls import path

from . import views

app_name = "alerts"
urlpatterns = [
    path("notifications/", views.notifications, name="notifications"),
    path("notifications/read/", views.mark_read, name="mark_read"),
    path("notifications/link/", views.notifications_link, name="link"),
    path("notifications/<int:pk>/", views.open_notification, name="open"),
]
