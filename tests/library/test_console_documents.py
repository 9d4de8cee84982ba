"""Documents inside the console: the library's own parts, and the way back."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import Collection, Document

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client, administrator):
    client.force_login(administrator)
    return client


@pytest.fixture
def handbook():
    return Collection.objects.create(name="Handbook")


def page(collection):
    return f"/admin/agents/collection/{collection.pk}/documents/"


def test_documents_are_added_on_a_page_of_the_console(admin, handbook):
    assert page(handbook) in admin.get("/admin/agents/collection/").content.decode()
    text = admin.get(page(handbook)).content.decode()
    assert 'class="upload-zone"' in text
    assert "console-side" in text

    file = SimpleUploadedFile("rules.md", b"# Rules")
    upload = f"/library/{handbook.pk}/upload/"
    sender = {"Referer": f"http://testserver{page(handbook)}"}
    answer = admin.post(upload, {"file": file}, headers=sender)

    assert answer.url == page(handbook)
    assert Document.objects.get().name == "rules.md"
    assert (
        f'id="document-{Document.objects.get().pk}"'
        in admin.get(page(handbook)).content.decode()
    )


def test_the_library_leads_back_to_itself(admin, handbook):
    file = SimpleUploadedFile("rules.md", b"# Rules")
    answer = admin.post(f"/library/{handbook.pk}/upload/", {"file": file})

    assert answer.url == f"/library/{handbook.pk}/"


def test_a_rejected_page_is_explained_in_the_console(admin, handbook):
    sender = {"Referer": f"http://testserver{page(handbook)}"}
    add = {"url": "ftp://example.com", "kind": "page", "limit": "5", "interval": "never"}
    answer = admin.post(f"/library/{handbook.pk}/add/", add, headers=sender)

    assert answer.status_code == 422
    assert "console-side" in answer.content.decode()


def test_others_have_no_access_and_own_collections_are_not_listed(client, person, handbook):
    own = Collection.objects.create(name="Mine", owner=person)
    person.is_staff = True
    person.save()
    client.force_login(person)

    assert client.get(page(handbook)).status_code == 403
    person.user_permissions.add(*view_permission())
    assert client.get(page(own)).status_code == 404


def view_permission():
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(codename="view_document")
