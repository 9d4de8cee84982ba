"""The installation's own face: name, logo, color, banner, start page, and their page."""

import re
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core import mail
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone, translation

from agents.access import audit
from agents.accounts.models import Invitation
from agents.accounts.users import invitations
from agents.catalog.samples import sample_questions
from agents.console.system import logo_files
from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.permissions import TerminalUser
from agents.db.installation import branding as settings
from agents.db.installation.setting import ROWS
from agents.knowledge.files.errors import FileRefused
from agents.models import Agent, AuditEntry, InstallationSetting, StoredFile
from agents.web import branding
from agents.web.branding import colors
from tests.conftest import as_user
from tests.pictures import png

pytestmark = pytest.mark.django_db

PAGE = "/admin/settings/branding/"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'


def save(client, **values):
    response = client.post(PAGE, values)
    assert response.status_code == 302, response.context["form"].errors
    return response


def upload(content, name):
    return SimpleUploadedFile(name, content)


def test_the_name_is_on_every_page_in_the_readers_language(admin_client, client):
    save(admin_client, brand_name_en="Teahouse", brand_name_ja="茶屋")

    assert "<title>Sign in · Teahouse</title>" in client.get("/login/").content.decode()
    japanese = client.get("/login/", headers={"Accept-Language": "ja"}).content.decode()
    assert "茶屋" in japanese
    assert "Teahouse" not in japanese
    assert "Ashiato" not in admin_client.get("/").content.decode()
    ROWS.refresh()  # error pages don't ask the database
    assert "Teahouse" in admin_client.get("/nothing/").content.decode()


@pytest.mark.parametrize(
    ("values", "language", "name"),
    [
        ({}, "ja", "Ashiato"),
        ({"brand_name_en": "Teahouse"}, "ja", "Teahouse"),
        ({"brand_name_ja": "茶屋"}, "en", "茶屋"),
        ({"brand_name_en": "Teahouse", "brand_name_ja": "茶屋"}, "en-us", "Teahouse"),
    ],
)
def test_an_empty_language_has_the_text_of_the_other_one(values, language, name):
    assert branding.from_values(values, language).name == name


def test_no_page_has_the_products_name_of_its_own():
    folder = Path(django_settings.BASE_DIR, "templates")
    named = {path.name for path in folder.rglob("*.html") if "Ashiato" in path.read_text()}
    assert named == {"branding.html"}  # says what it replaces


def test_branding_is_read_from_memory(django_assert_num_queries):
    InstallationSetting.objects.bulk_create(
        [InstallationSetting(key="brand_name_en", value="Teahouse")]
    )
    ROWS.refresh()
    with django_assert_num_queries(0):
        assert branding.current("en").name == "Teahouse"


def test_mails_and_authenticator_apps_have_the_name(configure, administrator, rf):
    configure(brand_name_en="Teahouse")
    invitation = Invitation.objects.create(
        email="ada@example.com", expires_at=timezone.now(), digest="d"
    )
    invitations.send(invitation, "https://example.com", administrator)

    [message] = mail.outbox
    assert "Teahouse" in message.subject
    assert "Ashiato" not in message.body


@pytest.mark.parametrize("color", ["#ffff00", "#ffffff", "#000000", "#2563eb", "#7f7f7f"])
def test_every_color_gets_readable_shades(color):
    shades = colors.derive(color)
    for shade, background in (
        (shades.light, colors.LIGHT_BACKGROUND),
        (shades.dark, colors.DARK_BACKGROUND),
    ):
        assert colors.contrast(shade.color, background) >= colors.MIN_CONTRAST
    assert colors.contrast(shades.light.hover, "#ffffff") >= colors.MIN_CONTRAST
    assert colors.contrast(shades.dark.hover, colors.DARK_BACKGROUND) >= colors.MIN_CONTRAST


def test_a_color_that_is_readable_stays_as_it_is():
    assert colors.derive("#0f766e").light.color == "#0f766e"
    assert colors.derive("#ffff00").dark.color == "#ffff00"


def test_the_color_is_a_stylesheet_and_no_inline_style(admin_client, client):
    save(admin_client, brand_color="#2563EB")

    page = client.get("/login/").content.decode()
    [url] = re.findall(r'href="(/branding/\d+/2563eb.css)"', page)
    response = client.get(url)
    assert response["Content-Type"].startswith("text/css")
    assert "immutable" in response["Cache-Control"]
    assert "style=" not in page
    assert client.get(url.replace("2563eb", "2563ez")).status_code == 404


def test_a_wrong_value_is_explained_and_nothing_is_saved(admin_client):
    values = {"brand_color": "blue", "brand_name_en": "x" * 41, "banner_until": "2027-02-30"}
    response = admin_client.post(PAGE, values)

    assert response.status_code == 422
    assert set(response.context["form"].errors) == set(values)
    assert not InstallationSetting.objects.exists()


def test_a_banner_is_there_until_it_is_dismissed_or_its_last_day_is_over(
    person_client, configure
):
    configure(banner_en="Read [this](https://example.com). <b>Now</b>")
    page = person_client.get("/").content.decode()
    assert '<a href="https://example.com"' in page
    assert "<b>Now</b>" not in page

    version = branding.current("en").banner.version
    response = person_client.post(
        f"/branding/banner/{version}/dismiss/", {"next": "//evil.com"}
    )
    assert response["Location"] == "/"
    assert "site-banner" not in person_client.get("/").content.decode()

    configure(banner_en="Another text")
    assert "site-banner" in person_client.get("/").content.decode()
    configure(banner_until="2020-01-01")
    assert "site-banner" not in person_client.get("/").content.decode()


def test_the_start_page_has_the_installations_texts_and_questions(
    person_client, agent, configure
):
    configure(
        start_heading_en="How can we help?",
        start_text_en="Ask about tea.",
        start_questions_en="Which teas are low?\n\n Who is on shift? ",
    )
    page = person_client.get("/").content.decode()
    assert "How can we help?" in page
    assert "Ask about tea." in page

    with translation.override("ja"):
        questions = sample_questions.for_agent(Agent(), ["calculator"])
    assert questions == ["Which teas are low?", "Who is on shift?"]
    own = Agent(example_questions="Mine")
    assert sample_questions.for_agent(own, []) == ["Mine"]


def test_an_image_is_scaled_and_served_without_an_account(admin_client, client):
    save(admin_client, brand_logo=upload(png(), "logo.png"))

    url = branding.current().logo
    assert url == branding.current().dark_logo
    response = client.get(url)
    assert response["Content-Type"] == "image/webp"
    assert "sandbox" in response["Content-Security-Policy"]
    assert url in client.get("/login/").content.decode()
    entry = AuditEntry.objects.filter(action=audit.SETTING_CHANGED).latest("pk")
    assert entry.subject == "setting:brand_logo"


def test_a_replaced_or_removed_logo_is_deleted(
    admin_client, django_capture_on_commit_callbacks
):
    for content in (SVG, SVG.replace(b"M0", b"M1")):
        with django_capture_on_commit_callbacks(execute=True):
            save(admin_client, brand_logo=upload(content, "logo.svg"))
        assert StoredFile.objects.count() == 1
    with django_capture_on_commit_callbacks(execute=True):
        save(admin_client, brand_logo_removed="on")
    assert StoredFile.objects.count() == InstallationSetting.objects.count() == 0


@pytest.mark.parametrize(
    "content",
    [
        SVG.replace(b"<path", b"<script>alert(1)</script><path"),
        SVG.replace(b"<path", b'<path onclick="alert(1)"'),
        SVG.replace(b"<path", b'<image href="https://example.com/a.png"/><path'),
        SVG.replace(b"<path", b"<style>@import 'https://example.com'</style><path"),
        SVG.replace(b"<path", b'<path style="fill: url(https://example.com)"'),
        SVG.replace(b"<path", b"<style>@im&#x70;ort 'https://example.com'</style><path"),
        SVG.replace(b"<path", rb"<style>@\69mport 'https://example.com'</style><path"),
        SVG.replace(b"<path", b'<a href="&#x6a;avascript:alert(1)"><path/></a><path'),
        SVG.replace(b"<path", b'<set to="java&#9;script:alert(1)"/><path'),
        b'<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG,
        b'<?xml-stylesheet href="https://example.com"?>' + SVG,
        b"<html xmlns='http://www.w3.org/1999/xhtml'/>",
        b"plain text",
    ],
)
def test_a_file_that_is_no_harmless_image_is_refused(content):
    with pytest.raises(FileRefused):
        logo_files.check_svg(content, "logo.svg")


def test_a_refused_logo_is_explained_and_nothing_is_saved(admin_client):
    response = admin_client.post(
        PAGE, {"brand_name_en": "Teahouse", "brand_logo": upload(b"text", "logo.svg")}
    )
    assert response.status_code == 422
    assert "brand_logo" in response.context["form"].errors
    assert not InstallationSetting.objects.exists()


def test_only_logos_in_use_are_served(client, configure):
    file = StoredFile.objects.create(digest="0" * 64, size=1, mime_type="image/png")
    assert client.get(f"/branding/logo/{file.digest}.webp").status_code == 404


def test_the_preview_saves_nothing(admin_client):
    response = admin_client.post(
        f"{PAGE}preview/",
        {"brand_name_ja": "茶屋", "brand_color": "#ffff00", "preview_language": "ja"},
    )
    assert response.context["preview"].name == "茶屋"
    assert response.context["shades"].light.is_adjusted
    assert not InstallationSetting.objects.exists()


def test_a_reset_brings_the_defaults_back(admin_client):
    save(admin_client, brand_name_en="Teahouse", brand_logo=upload(SVG, "logo.svg"))
    admin_client.post(f"{PAGE}defaults/")
    assert not InstallationSetting.objects.exists()
    assert branding.current("en").name == "Ashiato"


def test_only_users_who_may_change_settings_can_change_it(person, person_client, add_user):
    assert person_client.get(PAGE).status_code == 302
    reader = as_user(add_user("rei", is_staff=True))
    assert reader.get(PAGE).status_code == 403
    assert reader.post(f"{PAGE}defaults/").status_code == 403
    assert reader.post(f"{PAGE}preview/").status_code == 403


def test_texts_are_part_of_configuration_files_and_logos_are_not(admin_client):
    save(admin_client, brand_name_en="Teahouse", brand_logo=upload(SVG, "logo.svg"))
    text = export(TerminalUser(), ExportSelection())
    assert "Teahouse" in text
    assert "brand_logo" not in text


def test_a_setting_of_the_branding_is_not_on_the_page_of_settings(admin_client):
    form = admin_client.get(reverse("admin:agents_settings")).context["form"]
    assert not set(settings.SETTINGS) & set(form.fields)
    with pytest.raises(ValidationError):
        settings.COLOR_SETTING.clean(5)
    assert ROWS.get() == {}
