"""Encrypts all secrets again with the first encryption key."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, no_translations
from django.db import models, transaction

from agents.db.fast_writes import concrete_field
from agents.models.secret import EncryptedTextField, EncryptedValue, UnreadableSecret

BATCH = 100
UNREADABLE_MESSAGE = """\
These secrets can't be decrypted with any key in ASHIATO_ENCRYPTION_KEYS and weren't changed:
{names}
Add the key they were encrypted with to the end of the list and run this again, or enter the
secrets again in the admin console."""


class Command(BaseCommand):
    help = "Re-encrypts all secrets with the first key in ASHIATO_ENCRYPTION_KEYS."

    @no_translations
    def handle(self, **options: Any) -> None:
        lost: list[str] = []
        for model, columns in encrypted_fields():
            count, unread = reencrypt(model, columns)
            lost += unread
            self.stdout.write(f"{model._meta.verbose_name_plural}: {count} re-encrypted")
        if lost:
            raise CommandError(
                UNREADABLE_MESSAGE.format(names="\n".join(f"  {name}" for name in lost))
            )


def encrypted_fields() -> Iterator[tuple[type[models.Model], list[str]]]:
    """Yield all models with secrets, and their encrypted columns."""
    for model in apps.get_models():
        fields = model._meta.concrete_fields
        if names := [field.name for field in fields if isinstance(field, EncryptedTextField)]:
            yield model, names


def reencrypt(model: type[models.Model], columns: list[str]) -> tuple[int, list[str]]:
    """Return how many secrets have the newest key now, and which are unreadable.

    In batches, because other writers wait for the end of each. If it is interrupted, older keys
    still read the rest.
    """
    count = 0
    unread: list[str] = []
    last: Any = None
    rows = model._default_manager.select_for_update().order_by("pk")
    while True:
        with transaction.atomic():
            batch = list((rows if last is None else rows.filter(pk__gt=last))[:BATCH])
            for row in batch:
                secrets = {name: getattr(row, name) for name in columns}
                readable = [
                    name for name, secret in secrets.items() if secret and can_read(secret)
                ]
                unread += [
                    f"{model._meta.verbose_name} {row}: "
                    f"{concrete_field(model, name).verbose_name}"
                    for name, secret in secrets.items()
                    if secret and name not in readable
                ]
                if readable:
                    row.save(update_fields=readable)  # saving encrypts with the newest key
                count += len(readable)
        if len(batch) < BATCH:
            return count, unread
        last = batch[-1].pk


def can_read(secret: EncryptedValue) -> bool:
    try:
        secret.reveal()
    except UnreadableSecret:
        return False
    return True
