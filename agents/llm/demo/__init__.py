"""A model that needs no key and no network: rules instead of AI, in the form of a real one."""

from .model import DEMO_LABEL, DemoModel

__all__ = ["DEMO_LABEL", "DemoModel"]
