"""A rule-based model that needs no key and no network, with the interface of a real one."""

from .model import DEMO_LABEL, DemoModel

__all__ = ["DEMO_LABEL", "DemoModel"]
