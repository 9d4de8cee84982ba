"""WebSocket consumers: pages that watch runs."""

from .live import EventDicts, Handlers, LiveConsumer
from .run_page import RunConsumer

__all__ = ["EventDicts", "Handlers", "LiveConsumer", "RunConsumer"]
