"""The page to export, preview and import a file."""

import re

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.permissions import TerminalUser
from agents.models import Agent, AuditEntry
from tests.conftest import as_user, select
from tests.review.conftest import may
from tests.sampling import one_in

from .conftest import SECRETS

pytestmark = pytest.mark.django_db(transaction=True)

FILE = "ashiato: 1\nagents:\n  helper:\n    instructions: |-\n      Be brief.\n      Be kind.\n"


def page_url(name=""):
    return reverse(f"admin:agents_configuration{name and '_' + name}")


def post_preview(client, text=FILE, **more):
    return client.post(page_url("difference"), {"text": text.replace("\n", "\r\n"), **more})


def sealed_form(answer, text=FILE, **more):
    seal = re.search(r'name="seal" value="(\w+)"', answer.text)[1]
    return {"text": text.replace("\n", "\r\n"), "seal": seal, **more}


def test_the_menu_leads_to_the_page(admin_client, agent):
    assert page_url() in admin_client.get("/admin/").text
    assert admin_client.get(page_url()).status_code == 200


def test_downloading_the_file_is_audited(admin_client, installation, administrator):
    answer = admin_client.post(page_url("export"), {"kinds": ["agents", "models"]})
    text = answer.text

    assert text == export(TerminalUser(), ExportSelection(kinds=["agents", "models"]))
    assert ".yaml" in answer["Content-Disposition"]
    entry = AuditEntry.objects.filter(action="configuration.exported").first()
    assert entry.detail == {"kinds": ["models", "agents"]}
    assert not [secret for secret in SECRETS if secret in text]


def test_the_file_has_only_readable_kinds(installation, django_user_model):
    clerk = django_user_model.objects.create_user("clerk", is_staff=True)
    client = as_user(may(clerk, "view_agent", "view_workflow"))

    assert client.post(page_url("export"), {"kinds": ["models"]}).status_code == 422
    told = yaml.safe_load(client.post(page_url("export"), {"kinds": ["agents"]}).content)
    assert [*told] == ["ashiato", "agents"]
    refused = post_preview(client, "ashiato: 1\nmodels:\n  fast: {model: x}\n").text
    assert "You don&#x27;t have permission to change models." in refused
    assert "gpt-fast" not in refused


def test_users_without_permission_are_rejected(agent, person):
    client = as_user(may(person, "change_guardrailpattern"))
    staff = type(person).objects.create_user("staff", is_staff=True)

    for name in ("", "export", "difference", "apply"):
        assert client.post(page_url(name)).status_code == 302
        assert as_user(staff).post(page_url(name)).status_code == 403


def test_get_requests_change_nothing(admin_client, agent):
    assert admin_client.get(page_url("export")).status_code == 405
    assert admin_client.get(page_url("apply")).status_code == 405
    assert admin_client.get(page_url("difference")).url == page_url()


def test_a_file_is_previewed_before_the_import(admin_client, agent):
    answer = post_preview(admin_client)

    assert "Be brief.\nBe kind." in [words.text() for words in select(answer, "ins")]
    assert Agent.objects.get().instructions == ""
    assert admin_client.post(page_url("apply"), sealed_form(answer)).url == page_url()
    assert Agent.objects.get().instructions == "Be brief.\nBe kind."
    assert "1 change applied." in admin_client.get(page_url()).text


def test_changes_since_the_preview_are_shown_again(admin_client, agent):
    answer = post_preview(admin_client)
    Agent.objects.update(instructions="Be slow.")
    again = admin_client.post(page_url("apply"), sealed_form(answer))

    assert again.status_code == 409
    assert "The settings changed in the meantime" in again.text
    assert Agent.objects.get().instructions == "Be slow."
    assert admin_client.post(page_url("apply"), sealed_form(again)).status_code == 302


@pytest.mark.parametrize(
    "change",
    one_in(3, [{"text": FILE.replace("kind", "rude")}, {"remove": "on"}, {"seal": "0"}]),
)
def test_only_previewed_changes_are_imported(admin_client, agent, change):
    Agent.objects.create(name="other")
    posted = sealed_form(post_preview(admin_client)) | change

    assert admin_client.post(page_url("apply"), posted).status_code == 409
    assert Agent.objects.get(name="helper").instructions == ""


def test_a_preview_cannot_be_used_by_another_user(admin_client, agent, django_user_model):
    other = as_user(django_user_model.objects.create_superuser("second"))

    assert (
        other.post(page_url("apply"), sealed_form(post_preview(admin_client))).status_code
        == 409
    )


def test_errors_have_their_line_and_prevent_the_import(admin_client, agent):
    html = post_preview(admin_client, "ashiato: 1\nagents:\n  helper: {max_steps: 0}\n").text

    assert "line 3" in html
    assert 'name="seal"' not in html


def test_an_object_that_needs_a_secret_says_so(admin_client, installation):
    text = "ashiato: 1\nconnections:\n  new: {provider: openai, has_key: true}\n"
    answer = post_preview(admin_client, text)

    assert "needs: API key" in answer.text
    page = admin_client.post(page_url("apply"), sealed_form(answer, text), follow=True).text
    assert "API key" in page


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"\xff\xfe\x00", "UTF-8"),
        (b"#" * 900_000, "The limit is 800000 bytes"),
        (b"", "The submitted file is empty."),
        (b"ashiato: 1\n\x00", "Syntax error"),
        ("\ufeffashiato: 1\n".encode(), "already match the file"),
    ],
)
def test_any_upload_gets_a_response(admin_client, agent, file, words):
    answer = admin_client.post(
        page_url("difference"), {"file": SimpleUploadedFile("a.yaml", file)}
    )

    assert answer.status_code in {200, 422}
    assert words in answer.text


@pytest.mark.parametrize(
    "text", one_in(4, ["", " \n", "nul \0", "half \\ud800", "ashiato: 1\n\x85"])
)
def test_any_text_gets_a_response(admin_client, agent, text):
    assert post_preview(admin_client, text).status_code in {200, 422}
    assert admin_client.post(page_url("apply"), {"text": text, "seal": "x"}).status_code in {
        409,
        422,
    }


def test_a_long_preview_has_pages_and_is_applied_as_a_whole(admin_client, agent):
    agents = "".join(
        f"  agent-{number:03}:\n    instructions: Be brief.\n" for number in range(60)
    )
    text = f"ashiato: 1\nagents:\n{agents}"

    first = post_preview(admin_client, text)
    second = post_preview(admin_client, text, page="2")

    assert "agent-049" in first.text
    assert [
        one.item.name for _s, _l, _c, shown in second.context["parts"] for one in shown
    ] == [f"agent-{number:03}" for number in range(50, 60)]
    assert [count for _state, _label, count, _shown in first.context["parts"]] == [60]
    assert first.text.count('<details class="config-item"') == 50
    assert admin_client.post(page_url("apply"), sealed_form(second, text)).status_code == 302
    assert Agent.objects.filter(name__startswith="agent-").count() == 60
