"""WebSocket consumers: pages that watch runs."""

from .incoming_frames import BadFrame
from .live import EventDicts, LiveConsumer, Subject
from .run_page import RunConsumer

__all__ = ["BadFrame", "EventDicts", "LiveConsumer", "RunConsumer", "Subject"]
