"""Documents inside the console: the library's own parts, and the way back."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import Collection, Document
from tests.conftest import as_staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def handbook():
    return Collection.objects.create(name="Handbook")


def page(collection):
    return f"/admin/agents/collection/{collection.pk}/documents/"


def test_documents_are_added_on_a_page_of_the_console(admin_client, handbook):
    assert page(handbook) in admin_client.get("/admin/agents/collection/").text
    text = admin_client.get(page(handbook)).text
    assert 'class="upload-zone"' in text
    assert "console-menu" in text

    file = SimpleUploadedFile("rules.md", b"# Rules")
    upload = f"/library/{handbook.pk}/upload/"
    sender = {"Referer": f"http://testserver{page(handbook)}"}
    answer = admin_client.post(upload, {"file": file}, headers=sender)

    assert answer.url == page(handbook)
    assert Document.objects.get().name == "rules.md"
    assert f'id="document-{Document.objects.get().pk}"' in admin_client.get(page(handbook)).text


def test_the_library_leads_back_to_itself(admin_client, handbook):
    file = SimpleUploadedFile("rules.md", b"# Rules")
    answer = admin_client.post(f"/library/{handbook.pk}/upload/", {"file": file})

    assert answer.url == f"/library/{handbook.pk}/"


def test_a_rejected_page_is_explained_in_the_console(admin_client, handbook):
    sender = {"Referer": f"http://testserver{page(handbook)}"}
    add = {"url": "ftp://example.com", "kind": "page", "limit": "5", "interval": "never"}
    answer = admin_client.post(f"/library/{handbook.pk}/add/", add, headers=sender)

    assert answer.status_code == 422
    assert "console-menu" in answer.text


def test_others_have_no_access_and_own_collections_are_not_listed(person, handbook):
    own = Collection.objects.create(name="Mine", owner=person)
    client = as_staff(person)

    assert client.get(page(handbook)).status_code == 403
    person.user_permissions.add(*view_permission())
    assert client.get(page(own)).status_code == 404


def view_permission():
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(codename="view_document")
