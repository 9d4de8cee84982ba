from .exports import export_json, export_markdown
from .listing import run_list
from .runs import payload, run, step, steps
from .sharing import revoke, share, shared
from .unmasking import unmask

__all__ = [
    "export_json",
    "export_markdown",
    "payload",
    "revoke",
    "run",
    "run_list",
    "share",
    "shared",
    "step",
    "steps",
    "unmask",
]
