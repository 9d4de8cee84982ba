import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django_app = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import OriginValidator, WebsocketDenier  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from agents.consumers import RunConsumer  # noqa: E402
from chat.consumers import ChatConsumer  # noqa: E402

sockets = URLRouter(
    [
        path("ws/chat/<int:pk>/", ChatConsumer.as_asgi()),
        path("ws/runs/<int:pk>/", RunConsumer.as_asgi()),
        re_path("", WebsocketDenier.as_asgi()),
    ]
)
application = ProtocolTypeRouter(
    {
        "http": django_app,
        "websocket": OriginValidator(AuthMiddlewareStack(sockets), settings.ORIGINS),
    }
)
