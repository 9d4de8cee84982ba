"""The files of a server and of its instances."""

from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents.models import McpServer
from agents.tools.mcp.process import server_folder
from agents.tools.mcp.process.server_folder import FolderSize

from .configuration import home_folder
from .connections import disconnect, in_all_loops, wait_for_all


def measure_files(server: McpServer) -> FolderSize:
    """Return the size of a server's persistent files, of all its instances."""
    return server_folder.measure(home_folder(server.pk))


def clear_files(server: McpServer) -> None:
    """Delete the files of a server that stays; its next call starts with empty folders.

    Other processes start their instances again, because the configuration has changed.
    """
    server.files_deleted_at = timezone.now()
    server.save(update_fields=["files_deleted_at"])
    transaction.on_commit(partial(delete_files, server.pk, server.name))


def delete_files(pk: int, name: str) -> None:
    """Stop a server in this process, then delete its files."""
    wait_for_all(disconnect(name))
    server_folder.delete(home_folder(pk))


def instance_folders() -> dict[str, list[Path]]:
    """Return the folders of instances by scope, e.g. `people/12`: one for each server."""
    folders: dict[str, list[Path]] = {}
    for kind in ("people", "chats"):
        for group in sorted((settings.DATA_DIR.absolute() / "mcp").glob(f"*.{kind}")):
            for name in server_folder.instance_names(group):
                folders.setdefault(f"{kind}/{name}", []).append(group / name)
    return folders


def delete_instance_files(*scopes: str) -> None:
    """Stop the instances of these people or chats in this process and delete their files."""
    folders = instance_folders()
    if not (existing := [scope for scope in scopes if scope in folders]):
        return
    wait_for_all(in_all_loops(lambda loop_state: loop_state.connections.drop_scopes(existing)))
    for folder in (folder for scope in existing for folder in folders[scope]):
        server_folder.delete_instance(folder)
