"""Badges in the console's lists: one look, in sentence case, in both languages."""

from django.contrib import admin
from django.utils import timezone

from agents.insight.alerts.models import AlertChannel, Delivery
from agents.web.presentation.formats.badges import badge

LISTS = "/admin/alerts/delivery/"


def test_a_badge_is_in_sentence_case_and_its_text_is_escaped():
    assert badge("not tested yet", "amber") == (
        '<span class="badge" data-tone="amber">Not tested yet</span>'
    )
    assert "&lt;b&gt;" in badge("x", title="<b>")


def test_no_list_displays_choices_as_they_are_stored():
    """A field with choices in a list is a badge, or has labels in sentence case."""
    raw = [
        f"{model._meta.label}.{name}"
        for model, page in admin.site._registry.items()
        for name in page.list_display
        if isinstance(name, str) and hasattr(model, f"get_{name}_display")
        for label in dict(model._meta.get_field(name).flatchoices).values()
        if str(label)[:1].islower()
    ]
    assert {*raw} <= {"agents.McpServer.state"}  # cards with a template of their own


def test_the_filter_of_a_list_has_the_same_labels_as_its_badges(admin_client):
    rows = [AlertChannel(name=name, kind="webhook") for name in ("on call", "office")]
    for channel in AlertChannel.objects.bulk_create(rows):
        Delivery.objects.create(channel=channel, event="test", next_at=timezone.now())

    text = admin_client.get(LISTS, {"status__exact": "pending"}).text

    assert '<span class="badge" data-tone="amber">Pending</span>' in text
    assert "<strong>Pending</strong>" in text
    assert ">on call</a>" in text  # a name stays as it is


def test_a_read_only_page_has_the_same_labels(admin_client):
    channel = AlertChannel.objects.create(name="on call", kind="webhook")
    row = Delivery.objects.create(
        channel=channel, event="test", subject="a & b", next_at=timezone.now()
    )

    text = admin_client.get(f"{LISTS}{row.pk}/change/").text

    assert '<div class="readonly">Pending</div>' in text
    assert '<div class="readonly">a &amp; b</div>' in text
