"""The page to export, preview and import a file."""

import re

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents.console.config_files.exporter import ExportSelection, export
from agents.console.config_files.permissions import TerminalUser
from agents.models import Agent, AuditEntry
from tests.review.conftest import client_of, may

from .conftest import SECRETS

pytestmark = pytest.mark.django_db(transaction=True)

FILE = "ashiato: 1\nagents:\n  helper:\n    instructions: |-\n      Be brief.\n      Be kind.\n"


def way(name=""):
    return reverse(f"admin:agents_configuration{name and '_' + name}")


@pytest.fixture
def root(administrator):
    return client_of(administrator)


def post_preview(client, text=FILE, **more):
    return client.post(way("difference"), {"text": text.replace("\n", "\r\n"), **more})


def sealed_form(answer, text=FILE, **more):
    seal = re.search(r'name="seal" value="(\w+)"', answer.content.decode())[1]
    return {"text": text.replace("\n", "\r\n"), "seal": seal, **more}


def test_the_menu_leads_to_the_page(root, agent):
    assert way() in root.get("/admin/").content.decode()
    assert root.get(way()).status_code == 200


def test_the_file_is_downloaded_and_that_is_recorded(root, installation, administrator):
    answer = root.post(way("export"), {"kinds": ["agents", "models"]})
    text = answer.content.decode()

    assert text == export(TerminalUser(), ExportSelection(kinds=["agents", "models"]))
    assert ".yaml" in answer["Content-Disposition"]
    entry = AuditEntry.objects.filter(action="configuration.exported").first()
    assert entry.detail == {"kinds": ["models", "agents"]}
    assert not [secret for secret in SECRETS if secret in text]


def test_only_what_one_may_read_is_in_the_file(installation, django_user_model):
    clerk = django_user_model.objects.create_user("clerk", is_staff=True)
    client = client_of(may(clerk, "view_agent", "view_workflow"))

    assert client.post(way("export"), {"kinds": ["models"]}).status_code == 422
    told = yaml.safe_load(client.post(way("export"), {"kinds": ["agents"]}).content)
    assert [*told] == ["ashiato", "agents"]
    refused = post_preview(client, "ashiato: 1\nmodels:\n  fast: {model: x}\n").content.decode()
    assert "You don&#x27;t have permission to change models." in refused
    assert "gpt-fast" not in refused


def test_nobody_else_may_do_any_of_it(agent, person):
    client = client_of(may(person, "change_guardrailpattern"))
    staff = type(person).objects.create_user("staff", is_staff=True)

    for name in ("", "export", "difference", "apply"):
        assert client.post(way(name)).status_code == 302
        assert client_of(staff).post(way(name)).status_code == 403


def test_nothing_is_done_by_reading(root, agent):
    assert root.get(way("export")).status_code == 405
    assert root.get(way("apply")).status_code == 405
    assert root.get(way("difference")).url == way()


def test_a_file_is_shown_before_it_is_done(root, agent):
    answer = post_preview(root)

    assert "<ins>Be brief.\nBe kind.</ins>" in answer.content.decode()
    assert Agent.objects.get().instructions == ""
    assert root.post(way("apply"), sealed_form(answer)).url == way()
    assert Agent.objects.get().instructions == "Be brief.\nBe kind."
    assert "1 change applied." in root.get(way()).content.decode()


def test_what_was_changed_since_is_shown_once_more(root, agent):
    answer = post_preview(root)
    Agent.objects.update(instructions="Be slow.")
    again = root.post(way("apply"), sealed_form(answer))

    assert again.status_code == 409
    assert "The configuration changed in the meantime" in again.content.decode()
    assert Agent.objects.get().instructions == "Be slow."
    assert root.post(way("apply"), sealed_form(again)).status_code == 302


@pytest.mark.parametrize(
    "change", [{"text": FILE.replace("kind", "rude")}, {"remove": "on"}, {"seal": "0"}]
)
def test_only_what_was_shown_is_done(root, agent, change):
    Agent.objects.create(name="other")
    posted = sealed_form(post_preview(root)) | change

    assert root.post(way("apply"), posted).status_code == 409
    assert Agent.objects.get(name="helper").instructions == ""


def test_what_one_was_shown_another_cannot_do(root, agent, django_user_model):
    other = client_of(django_user_model.objects.create_superuser("second"))

    assert other.post(way("apply"), sealed_form(post_preview(root))).status_code == 409


def test_what_is_refused_is_told_with_its_line_and_cannot_be_done(root, agent):
    html = post_preview(
        root, "ashiato: 1\nagents:\n  helper: {max_steps: 0}\n"
    ).content.decode()

    assert "line 3" in html
    assert 'name="seal"' not in html


def test_a_thing_that_needs_its_key_says_so(root, installation):
    text = "ashiato: 1\nmodels:\n  new: {model: gpt, has_key: true}\n"
    answer = post_preview(root, text)

    assert "needs: API key" in answer.content.decode()
    page = root.post(way("apply"), sealed_form(answer, text), follow=True).content.decode()
    assert "API key" in page


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"\xff\xfe\x00", "UTF-8"),
        (b"#" * 900_000, "The limit is 800000 bytes"),
        (b"", "The submitted file is empty."),
        (b"ashiato: 1\n\x00", "Syntax error"),
        ("\ufeffashiato: 1\n".encode(), "already matches the file"),
    ],
)
def test_any_upload_has_an_answer(root, agent, file, words):
    answer = root.post(way("difference"), {"file": SimpleUploadedFile("a.yaml", file)})

    assert answer.status_code in {200, 422}
    assert words in answer.content.decode()


@pytest.mark.parametrize("text", ["", " \n", "nul \0", "half \\ud800", "ashiato: 1\n\x85"])
def test_any_text_has_an_answer(root, agent, text):
    assert post_preview(root, text).status_code in {200, 422}
    assert root.post(way("apply"), {"text": text, "seal": "x"}).status_code in {409, 422}
