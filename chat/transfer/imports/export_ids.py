"""Ids of chats in our own exports, by which an import recognizes those of this installation."""

from django.utils.crypto import constant_time_compare, salted_hmac

from agents.db.sanitize import parse_id

ID_SALT = "chat export"
ID_CHARS = 16


def export_id(pk: int) -> str:
    """Return an id that no chat of another installation has."""
    return f"{pk}.{salted_hmac(ID_SALT, str(pk), algorithm='sha256').hexdigest()[:ID_CHARS]}"


def parse_export_id(text: str) -> int | None:
    """Return the chat's id if it was exported by this installation."""
    pk = parse_id(text.partition(".")[0])
    return pk if pk is not None and constant_time_compare(text, export_id(pk)) else None
