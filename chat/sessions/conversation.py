"""The messages of a chat with their runs, for exports and public links."""

from collections.abc import Iterator, Sequence

from django.contrib.auth.models import User

from chat.models import ChatSession, Message

from . import branches

PAGE_SIZE = 50


def visible_messages(chat: ChatSession, viewer: User) -> Iterator[Message]:
    """Yield the messages of the branch this user sees."""
    return messages_by_pk(branches.visible_path(chat, viewer))


def messages_by_pk(pks: Sequence[int]) -> Iterator[Message]:
    """Yield messages in this order, with their runs, a page at a time."""
    messages = Message.objects.select_related(
        "author", "run", "run__user", "run__review__corrected_by"
    )
    for start in range(0, len(pks), PAGE_SIZE):
        page = pks[start : start + PAGE_SIZE]
        rows = messages.in_bulk(page)
        yield from (rows[pk] for pk in page if pk in rows)
