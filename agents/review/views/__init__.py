from .exports import export_json, export_markdown
from .listing import completions, delete_view, run_list, save_view
from .runs import payload, run, step, steps
from .sharing import revoke, share, shared
from .unmasking import unmask

__all__ = [
    "completions",
    "delete_view",
    "export_json",
    "export_markdown",
    "payload",
    "revoke",
    "run",
    "run_list",
    "save_view",
    "share",
    "shared",
    "step",
    "steps",
    "unmask",
]
