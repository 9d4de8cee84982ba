"""Agents elsewhere that speak A2A, as tools: a call is a task there."""

from .card import CARD_PATH, RemoteCard, read_card
from .tool import RemoteAgentTool

__all__ = ["CARD_PATH", "RemoteAgentTool", "RemoteCard", "read_card"]
