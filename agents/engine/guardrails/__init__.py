"""Guardrails: rules for what goes into a run and what comes out of it."""

from .checks import Guardrails

__all__ = ["Guardrails"]
