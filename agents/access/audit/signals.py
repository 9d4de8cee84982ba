"""Records changes to accounts and permissions, even from a shell or a command.

Pages record their own changes, in more detail.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models.signals import (
    m2m_changed,
    post_delete,
    post_migrate,
    post_save,
    pre_delete,
    pre_save,
)

from agents.access import audit
from agents.models import AuditPerson

from . import request_context, triggers

RECORDED_FIELDS = ("is_active", "is_staff", "is_superuser")
PRIVATE_FIELDS = ("username", "email", "first_name", "last_name")
WATCHED_FIELDS = (*RECORDED_FIELDS, *PRIVATE_FIELDS, "password")


def connect_receivers(app: AppConfig) -> None:
    """Connect the receivers once the models are loaded."""
    user = get_user_model()
    pre_save.connect(_remember_before, sender=user)
    post_save.connect(_on_user_saved, sender=user)
    pre_delete.connect(_on_user_deleted, sender=user)
    post_save.connect(_on_group_saved, sender=Group)
    post_delete.connect(_on_group_deleted, sender=Group)
    for through in (user.groups, user.user_permissions, Group.permissions):
        m2m_changed.connect(_on_rights_changed, sender=through.through)
    post_migrate.connect(triggers.create_triggers, sender=app)


def _remember_before(
    sender: Any, instance: Any, raw: bool, update_fields: Any, **_signal: Any
) -> None:
    """Remember the values before a change."""
    instance._before = None
    if (
        instance.pk
        and not raw
        and (update_fields is None or {*update_fields} & {*WATCHED_FIELDS})
    ):
        rows = sender._base_manager.filter(pk=instance.pk)
        instance._before = rows.values(*WATCHED_FIELDS).first()


def _on_user_saved(
    sender: Any, instance: Any, created: bool, raw: bool, **_signal: Any
) -> None:
    if raw or request_context.is_audited_elsewhere():
        return
    if created:
        granted = {name: True for name in RECORDED_FIELDS[1:] if getattr(instance, name)}
        audit.record(_actor(), audit.PERSON_ADDED, audit.person(instance), **granted)
        return
    changes: dict[str, list[Any]] = {}
    for name, old_value in (instance._before or {}).items():
        new_value = getattr(instance, name)
        if old_value != new_value:
            # Without names and addresses: entries outlive the account.
            changes[name] = [old_value, new_value] if name in RECORDED_FIELDS else []
    if "password" in changes:
        del changes["password"]
        audit.record(_actor(), audit.PASSWORD_SET, audit.person(instance))
    if changes:
        audit.record(_actor(), audit.PERSON_CHANGED, audit.person(instance), changes=changes)


def _on_user_deleted(sender: Any, instance: Any, **_signal: Any) -> None:
    audit_person = audit.person(instance)
    actor = _actor()
    is_self = actor is not None and actor.pk == instance.pk
    # A deleted account can't be the actor of its own entry.
    audit.record(None if is_self else actor, audit.PERSON_DELETED, audit_person)
    AuditPerson.objects.filter(pk=audit_person.pk).update(user=None)


def _on_group_saved(
    sender: Any, instance: Group, created: bool, raw: bool, **_signal: Any
) -> None:
    if created and not raw and not request_context.is_audited_elsewhere():
        audit.record(_actor(), audit.ADDED, instance, name=instance.name)


def _on_group_deleted(sender: Any, instance: Group, **_signal: Any) -> None:
    if not request_context.is_audited_elsewhere():
        audit.record(_actor(), audit.DELETED, instance, name=instance.name)


def _on_rights_changed(
    sender: Any,
    instance: Any,
    action: str,
    reverse: bool,
    model: Any,
    pk_set: Any,
    **_signal: Any,
) -> None:
    if (
        action not in {"post_add", "post_remove", "pre_clear"}
        or request_context.is_audited_elsewhere()
    ):
        return
    field = "groups" if sender.__name__ == "User_groups" else "permissions"
    pks = pk_set
    if action == "pre_clear":
        if reverse:
            rows = instance.user_set
        elif isinstance(instance, Group):
            rows = instance.permissions
        else:
            rows = instance.groups if field == "groups" else instance.user_permissions
        pks = list(rows.values_list("pk", flat=True))
    if not (related := list(model._base_manager.filter(pk__in=pks or ()))):
        return
    verb = "added" if action == "post_add" else "removed"
    if not reverse:
        detail = {"field": field, verb: _names(related)}
        audit.record(_actor(), audit.RIGHTS_CHANGED, _audit_subject(instance), **detail)
        return
    for row in related:
        detail = {"field": field, verb: _names([instance])}
        audit.record(_actor(), audit.RIGHTS_CHANGED, _audit_subject(row), **detail)


def _audit_subject(row: Any) -> Any:
    return audit.person(row) if isinstance(row, get_user_model()) else row


def _names(rows: Iterable[Any]) -> list[str]:
    return sorted(getattr(row, "codename", None) or row.name for row in rows)


def _actor() -> Any:
    return request_context.actor()
