"""Settings of the installation: where a value comes from, and the page that changes them."""

import re
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.urls import reverse

from agents.access import audit
from agents.catalog.language_models import model_setups, planner_factory
from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.db.installation import branding, configured, default_models
from agents.db.installation.setting import save
from agents.models import AuditEntry, InstallationSetting, Quota

pytestmark = pytest.mark.django_db

PAGE = "/admin/settings/"


def form_values(client, **changes):
    """Return what the browser would send for this page."""
    form = client.get(PAGE).context["form"]
    sent = {}
    for bound in form:
        value = bound.value()
        for name in (bound.html_name, bound.html_initial_name):
            if value is True:
                sent[name] = "on"
            elif value not in (None, False):
                sent[name] = value
    return {**sent, **changes}


def test_a_value_comes_from_the_environment_then_the_row_then_the_default(configure, settings):
    assert configured.TOKENS_PER_DAY.value is None
    configure(user_tokens=500)
    assert configured.TOKENS_PER_DAY.value == 500

    settings.USER_TOKENS = 70
    assert configured.TOKENS_PER_DAY.value == 70
    with pytest.raises(ValidationError, match="ASHIATO_USER_TOKENS is set by"):
        configure(user_tokens=5)


def test_every_setting_is_used_by_the_product():
    """A setting that nothing reads would be a lie."""
    folders = [django_settings.BASE_DIR / name for name in ("agents", "chat")]
    code = "\n".join(p.read_text() for f in folders for p in f.rglob("*.py"))
    own = Path(configured.__file__).read_text()
    made = r"(?:Setting|_(?:program_)?limit|_switch|_seconds)"
    names = re.findall(rf"^([A-Z_]+)(?::.*)? = {made}\(", own, re.M)

    # In modules with tests of their own.
    texts = {*branding.SETTINGS, *default_models.SETTINGS, "contact"}
    assert len(names) == len(set(configured.SETTINGS) - texts) >= 40
    assert [name for name in names if f"configured.{name}" not in code] == []


def test_a_saved_setting_applies_to_the_next_run_and_is_in_the_audit_log(admin_client):
    answer = admin_client.post(
        PAGE, form_values(admin_client, model_first_seconds="7.5"), follow=True
    )

    assert "1 setting saved." in answer.text
    setup = model_setups.find_setup("ollama/some")
    assert planner_factory._deadlines(setup).first == 7.5
    entry = AuditEntry.objects.get(action=audit.SETTING_CHANGED)
    assert entry.detail["changes"] == {"value": [60, 7.5]}


def test_a_wrong_value_is_explained_and_nothing_is_saved(admin_client):
    answer = admin_client.post(
        PAGE, form_values(admin_client, message_files="900", import_mb="7")
    )

    assert answer.status_code == 422
    assert "Must be between 1 and 50." in answer.text
    assert 'value="900"' in answer.text
    assert not InstallationSetting.objects.exists()


def test_an_open_page_saves_only_what_was_changed_on_it(admin_client, configure):
    sent = form_values(admin_client, message_files="3")
    configure(import_mb=9)  # meanwhile, by somebody else

    admin_client.post(PAGE, sent)

    assert (configured.MESSAGE_FILES.value, configured.IMPORT_MB.value) == (3, 9)


def test_the_composer_takes_as_many_and_as_large_files_as_is_set(admin_client, configure):
    configure(message_files=4, attachment_mb=120)

    page = admin_client.get("/").text

    assert 'data-most="4"' in page
    assert 'data-most-megabytes="120"' in page
    assert "Larger than 120 MB." in page


def test_money_is_entered_in_dollars_and_saved_in_millionths(admin_client):
    admin_client.post(PAGE, form_values(admin_client, quota_cost_month="12.34"))

    assert configured.COST_PER_MONTH.value == 12_340_000
    assert 'value="12.34"' in admin_client.get(PAGE).text


def test_a_text_is_entered_and_checked_like_a_number(admin_client):
    wrong = admin_client.post(PAGE, form_values(admin_client, contact="help"))
    assert "Enter an email address, or a link" in wrong.text

    admin_client.post(PAGE, form_values(admin_client, contact="help@example.org"))
    assert 'value="help@example.org"' in admin_client.get(PAGE).text


def test_a_reset_removes_the_row(admin_client, configure):
    configure(generated_titles=False)
    assert "Changed</span>" in admin_client.get(PAGE).text

    admin_client.post(reverse("admin:agents_setting_reset", args=["generated_titles"]))

    assert configured.GENERATED_TITLES.value is True
    assert not InstallationSetting.objects.exists()


def test_what_the_environment_sets_is_locked(admin_client, settings):
    settings.PUBLIC_LINKS = False
    page = admin_client.get(PAGE).text
    assert "Set by environment variable" in page
    assert "ASHIATO_PUBLIC_LINKS" in page

    admin_client.post(PAGE, form_values(admin_client, public_links="on"))
    assert configured.PUBLIC_LINKS.value is False


def test_a_user_without_permission_sees_no_settings(person_client, person):
    assert person_client.get(PAGE).status_code in (302, 403)
    person.is_staff = True
    person.save()
    assert person_client.get(PAGE).status_code == 403
    reset = reverse("admin:agents_setting_reset", args=["public_links"])
    assert person_client.post(reset).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_settings_and_groups_are_part_of_configuration_files(configure):
    from django.contrib.auth.models import Group

    configure(message_files=3)
    group = Group.objects.create(name="Sales")
    Quota.objects.create(group=group, measure="cost", window="month", limit=5_000_000)
    user = TerminalUser()
    text = export(user, ExportSelection(kinds=["settings", "groups"], names=[]))
    save(configured.MESSAGE_FILES, 4)
    Group.objects.all().delete()

    assert not preview_file(text, user).is_refused
    assert configured.MESSAGE_FILES.value == 4  # a preview changes nothing
    assert apply_file(text, user).is_done
    assert configured.MESSAGE_FILES.value == 3
    assert Quota.objects.get(group__name="Sales").limit == 5_000_000
    wrong = text.replace("value: 3", "value: 999")
    assert "Must be between 1 and 50." in str(preview_file(wrong, user).items)
