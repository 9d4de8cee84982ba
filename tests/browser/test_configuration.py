"""The configuration is exported, edited and imported."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_accessibility import faults

PAGE = "/admin/configuration/"


def preview_changes(page: Page, text: str) -> None:
    page.goto(PAGE)
    page.get_by_label("Or paste its contents").fill(text)
    page.get_by_role("button", name="Preview changes").click()


def test_an_exported_file_is_edited_and_imported(page: Page, watch, tmp_path: Path):
    page.goto("/admin/")
    page.locator(".console-menu").get_by_role("link", name="Settings").click()
    page.locator(".page-tabs").get_by_role("link", name="Configuration file").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / "ashiato.yaml"
    download.value.save_as(file)
    text = file.read_text()
    file.write_text(text.replace("max_steps: 10", "max_steps: 12", 1))

    page.locator("[name=file]").set_input_files(file)
    page.get_by_role("button", name="Preview changes").click()
    changed = page.locator(".part.changed .config-item")
    expect(changed).to_have_count(1)
    expect(changed.locator("del")).to_have_text("10")
    expect(changed.locator("ins")).to_have_text("12")
    assert not faults(page)

    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".messagelist .success")).to_have_text("1 change applied.")
    preview_changes(page, text)
    page.get_by_role("button", name="Apply").click()
    preview_changes(page, text)
    expect(page.locator(".calm")).to_have_text(
        "No changes. The settings already match the file."
    )


def test_a_rejected_line_is_fixed_and_imported_with_the_keyboard(page: Page, watch):
    preview_changes(page, "ashiato: 1\npatterns:\n  by-file:\n    pattern: '(a'\n")
    expect(page.locator(".part.refused .problems")).to_contain_text("line 4")
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    assert not faults(page)

    page.get_by_label("Or paste its contents").fill(
        "ashiato: 1\npatterns:\n  by-file: {pattern: zzz}\n"
    )
    page.get_by_role("button", name="Preview changes").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".part.new summary")).to_contain_text("by-file")
    page.get_by_role("button", name="Apply").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".messagelist .success")).to_have_text("1 change applied.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_configuration_page_fits_a_phone(visit, server, scheme):
    page = visit(server, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    preview_changes(
        page, "ashiato: 1\nagents:\n  helper:\n    instructions: |-\n      Be brief.\n"
    )
    expect(page.locator(".part.changed .config-item")).to_be_visible()

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not faults(page)
