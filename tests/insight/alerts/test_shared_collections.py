"""Who is given a collection by name learns of it, and decides in the library."""

import pytest

from agents.insight.alerts.models import Notification
from agents.models import Collection
from agents.web.library import sharing
from tests.conftest import as_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection(person):
    return Collection.objects.create(name="Tea", owner=person)


def test_a_share_by_name_notifies_the_receiver_once_and_leads_to_the_library(
    collection, person, stranger
):
    for right in ("read", "write"):
        sharing.add_person(collection, person, stranger.username, right)

    notification = Notification.objects.get()
    assert notification.user == stranger
    assert "Tea" in notification.text
    client = as_user(stranger)
    answer = client.get(f"/notifications/{notification.pk}/", follow=True)
    assert answer.redirect_chain == [("/library/", 302)]
    assert f'action="/library/{collection.pk}/accept/"' in answer.text


def test_the_notification_goes_with_the_access(collection, person, stranger):
    sharing.add_person(collection, person, stranger.username, "read")
    sharing.remove_person(collection, person, stranger.pk)

    assert not Notification.objects.exists()
