"""MCP servers: rows, connections, and accepted tool definitions.

Connections belong to an event loop and are made when a run needs them. What they report is
saved in rows for the console: a server's status and its current tools.
"""

from .configuration import (
    STDIO_PERMISSION,
    child_limits,
    home_folder,
    sandbox_policy,
    server_config,
    validate,
)
from .connections import disconnect, egress, running_instances, shut_down
from .definitions import DefinitionChanged, SyncResult, accept, pending_changes, pending_digest
from .files import (
    clear_files,
    delete_files,
    delete_instance_files,
    instance_folders,
    measure_files,
)
from .health import SAMPLE_RETENTION, save_health
from .sign_ins import find as find_sign_in
from .sign_ins import owner as sign_in_owner
from .sign_ins import servers_to_sign_in, shared_since
from .sign_out import end as end_sign_ins
from .sign_out import end_of_user as end_sign_ins_of_user
from .synchronization import probe, sync
from .tools import is_offered, load_tools, open_tool, withheld_reasons

__all__ = [
    "DefinitionChanged",
    "SAMPLE_RETENTION",
    "STDIO_PERMISSION",
    "SyncResult",
    "accept",
    "child_limits",
    "clear_files",
    "delete_files",
    "delete_instance_files",
    "disconnect",
    "egress",
    "end_sign_ins",
    "end_sign_ins_of_user",
    "find_sign_in",
    "home_folder",
    "instance_folders",
    "is_offered",
    "load_tools",
    "measure_files",
    "open_tool",
    "pending_changes",
    "pending_digest",
    "probe",
    "running_instances",
    "sandbox_policy",
    "save_health",
    "servers_to_sign_in",
    "server_config",
    "shared_since",
    "shut_down",
    "sign_in_owner",
    "sync",
    "validate",
    "withheld_reasons",
]
