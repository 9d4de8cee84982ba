"""People in the console: an invitation, quotas and settings, as people meet them."""

from playwright.sync_api import expect

from tests.browser.conversation import ask, begin

PASSWORD = "a long walk on the beach"
MADE_BEFORE = """
from django.contrib.auth.models import Group, User
Group.objects.create(name="Sales")
User.objects.create(username="aya", email="aya@example.com")
"""


def test_an_invited_person_accepts_and_chats_until_the_quota(page, visit, server):
    page.goto("/admin/auth/user/")
    page.get_by_role("link", name="Invite users").click()
    page.get_by_label("Email addresses").fill("mika@example.com")
    page.get_by_role("button", name="Create invitation").click()
    link = page.locator(".link-row input").input_value()

    guest = visit(server, storage_state=None)
    guest.goto(link)
    guest.get_by_label("Username").fill("mika")
    for field in guest.locator("[type=password]").all():
        field.fill(PASSWORD)
    guest.get_by_role("button", name="Create account").click()
    begin(guest, "What is 2 + 2?")

    page.goto("/admin/settings/")
    page.get_by_role("searchbox").fill("messages per day")
    expect(page.locator(".setting:visible")).to_have_count(1)
    page.get_by_label("Messages per day").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("1 setting saved.")).to_be_visible()
    ask(guest, "And 3 + 3?")
    expect(guest.get_by_text("limit of 1 message per day").first).to_be_visible()
    page.locator("#setting-quota_messages_day").get_by_role("button", name="Reset").click()
    expect(page.get_by_text("is back to its default")).to_be_visible()


def test_a_group_gets_a_member_and_a_daily_limit_in_a_few_clicks(page, server):
    server.manage("shell", "-c", MADE_BEFORE)
    page.goto("/admin/")
    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_role("link", name="Groups", exact=True).click()
    page.locator("#result_list").get_by_role("link", name="Sales").click()
    page.locator("#id_limit").fill("5")
    page.locator("#person-name").fill("aya@")
    page.get_by_role("option", name="aya").click()

    expect(page.locator("[data-changes]")).to_contain_text("2 changes: aya added, Limit $5")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".member")).to_have_count(0)
    expect(page.locator("[data-changes]")).to_be_empty()

    page.locator("#person-name").fill("aya")
    page.locator("#person-name").press("Enter")
    page.locator("#id_limit").fill("5")
    page.get_by_role("button", name="Save").click()
    page.locator("#result_list").get_by_role("link", name="Sales").click()
    expect(page.locator(".member")).to_have_count(1)
    expect(page.locator("#id_limit")).to_have_value("5.00")
