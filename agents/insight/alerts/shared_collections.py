"""Notifies users of collections that are shared with them by name."""

from typing import Any

from django.contrib.auth.models import User
from django.utils import translation
from django.utils.translation import gettext as _

from agents.access.names import display_name
from agents.models import Collection, CollectionShare
from agents.models.sharing.collections import MANAGE_PERMISSION

from .delivery import language_of
from .models import Event, Notification


def notify(
    sender: type[Collection], collection: Collection, person: User, by: User, **options: Any
) -> None:
    """Notify the receiver, who decides in the library whether it is searched."""
    is_manager = person.has_perm(MANAGE_PERMISSION)
    searched = Collection.objects.searched_for(person.pk, is_manager=is_manager)
    is_searched = searched.filter(pk=collection.pk).exists()
    with translation.override(language_of(person)):
        title = _("“%(name)s” was shared with you") % {"name": collection.name}
        if is_searched:
            text = _("Shared by %(name)s. Your searches include it.")
        else:
            text = _("Shared by %(name)s. Add it to your search in the library, or dismiss it.")
        text %= {"name": display_name(by)}
    Notification.objects.create(
        user=person,
        event=Event.COLLECTION_SHARED,
        collection=collection,
        text=f"{title}\n{text}",
    )


def withdraw(sender: type[CollectionShare], instance: CollectionShare, **options: Any) -> None:
    """Delete the notification when access ends: it names what the user can't see any more."""
    notifications = Notification.objects.filter(event=Event.COLLECTION_SHARED)
    notifications.filter(user=instance.user_id, collection=instance.collection_id).delete()
