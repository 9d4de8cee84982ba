"""A model's limits over all processes: slots as rows, a line in order of arrival."""

from .limiter import SharedRateLimiter
from .slots import QueueLength, queue_lengths

__all__ = ["QueueLength", "SharedRateLimiter", "queue_lengths"]
