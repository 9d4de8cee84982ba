"""Files that MCP servers save for one person or one chat, and when they are deleted.

Another process may still run such an instance, and a crash may come before the deletion, so
the daily cleanup deletes what belongs to nobody any more.
"""

from collections.abc import Iterable

from django.contrib.auth.models import User

from agents.catalog import mcp_servers
from agents.models import Run
from agents.tools.mcp.process.isolation import chat_scope, person_scope
from chat.models import ChatSession


def delete_for_chat(topic: str) -> None:
    mcp_servers.delete_instance_files(chat_scope(topic))


def delete_for_person(pk: int, topics: Iterable[str]) -> None:
    """Delete a person's files, and those of these topics that have no runs any more."""
    unused = {chat_scope(topic) for topic in topics} - _used_scopes(topics)
    mcp_servers.delete_instance_files(person_scope(pk), *sorted(unused))


def count_for_person(user: User, topics: Iterable[str]) -> int:
    """Return how many folders servers have for a person and for these topics."""
    folders = mcp_servers.instance_folders()
    scopes = {person_scope(user.pk), *map(chat_scope, topics)}
    return sum(len(folders.get(scope, ())) for scope in scopes)


def delete_unowned() -> None:
    """Delete the files of people, chats and other topics that no longer exist."""
    # A hashed name doesn't say whom it belongs to.
    scopes = {name for name in mcp_servers.instance_folders() if "/h-" not in name}
    people = [scope.removeprefix("people/") for scope in scopes if scope.startswith("people/")]
    topics = [scope.removeprefix("chats/") for scope in scopes if scope.startswith("chats/")]
    numbers = [int(name) for name in people if name.isdecimal()]
    user_pks = User.objects.filter(pk__in=numbers).values_list("pk", flat=True)
    used = {person_scope(pk) for pk in user_pks} | _used_scopes(topics)
    mcp_servers.delete_instance_files(*sorted(scopes - used))


def _used_scopes(topics: Iterable[str]) -> set[str]:
    """Return the scopes of topics that still have a chat or a run."""
    chats = (topic.removeprefix("chat.") for topic in topics if topic.startswith("chat."))
    numbers = [int(number) for number in chats if number.isdecimal()]
    run_topics = Run.objects.filter(topic__in=set(topics)).values_list("topic", flat=True)
    used_topics = set(run_topics)
    used_topics |= {chat.topic for chat in ChatSession.objects.filter(pk__in=numbers)}
    return {chat_scope(topic) for topic in used_topics}
