"""Collections that follow places: folders, Git repositories, buckets and MCP servers.

A check compares what a place has with the documents that came from it. What is new or changed
goes into the ingestion queue, and what has vanished is deleted (`checking`). Each kind only
lists and reads files (`place`).
"""

from importlib.util import find_spec

from . import bucket, git
from .checking import check_due, check_soon, kinds, mark_removed, register
from .folder import allowed_folders, find_folder, open_folder
from .place import FileUnreadable, Heartbeat, Place, PlaceFile, PlaceUnreadable

__all__ = [
    "FileUnreadable",
    "Heartbeat",
    "Place",
    "PlaceFile",
    "PlaceUnreadable",
    "allowed_folders",
    "check_due",
    "check_soon",
    "find_folder",
    "kinds",
    "mark_removed",
    "register",
]

register("folder", open_folder)
register("git", git.open_repository)
if find_spec("boto3"):
    register("s3", bucket.open_bucket)
