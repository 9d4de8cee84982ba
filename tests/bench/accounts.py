"""Signed-in users with chats, created directly in the database.

The sign-in form is slow on purpose and isn't measured here.
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client  # noqa: E402

from agents.access import api_keys  # noqa: E402
from chat.models import ChatSession  # noqa: E402


@transaction.atomic
def make(people: int, chats: int) -> list[dict]:
    return [_person(number, chats) for number in range(people)]


def _person(number: int, chats: int) -> dict:
    user, _ = get_user_model().objects.get_or_create(username=f"bench-{number}")
    made = [ChatSession.objects.create(user=user, title=f"Chat {n}") for n in range(chats)]
    _row, key = api_keys.create(user, "bench", ["ask"], requests_per_minute=1_000_000)
    return {"cookie": signed_in(user), "chats": [chat.pk for chat in made], "key": key}


def signed_in(user) -> str:
    """Return a signed-in user's cookie."""
    client, name = Client(), settings.SESSION_COOKIE_NAME
    client.force_login(user)
    return f"{name}={client.cookies[name].value}"


if __name__ == "__main__":
    print(json.dumps(make(int(sys.argv[1]), int(sys.argv[2]))))
