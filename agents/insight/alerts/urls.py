from django.urls import path

from . import views, webhook_pages

app_name = "alerts"
urlpatterns = [
    path("notifications/", views.notifications, name="notifications"),
    path("notifications/read/", views.mark_read, name="mark_read"),
    path("notifications/link/", views.notifications_link, name="link"),
    path("notifications/<int:pk>/", views.open_notification, name="open"),
    path("account/webhooks/", webhook_pages.webhooks_page, name="webhooks"),
    path("account/webhooks/new/", webhook_pages.new_webhook, name="new_webhook"),
    path("account/webhooks/<int:pk>/", webhook_pages.webhook_page, name="webhook"),
    path("account/webhooks/<int:pk>/secret/", webhook_pages.rotate_secret, name="rotate"),
    path("account/webhooks/<int:pk>/test/", webhook_pages.test_webhook, name="test"),
    path("account/webhooks/<int:pk>/delete/", webhook_pages.delete_webhook, name="delete"),
    path(
        "account/webhooks/<int:pk>/deliveries/<int:number>/replay/",
        webhook_pages.replay_delivery,
        name="replay",
    ),
]
