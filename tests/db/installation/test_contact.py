"""Where users reach an administrator: what can be entered, and where its link leads."""

import pytest
from django.core.exceptions import ValidationError

from agents.db.installation.contact import contact_link

pytestmark = pytest.mark.django_db


def test_an_email_has_its_text(configure):
    configure(contact="it+chat@example.org")

    link = contact_link("Run 7", "Stopped & out")

    assert link.url == "mailto:it+chat@example.org?subject=Run%207&body=Stopped%20%26%20out"
    assert not link.is_page


def test_a_page_gets_the_text_in_its_url_or_from_the_clipboard(configure):
    configure(contact="https://help.example.org/new?text={text}&team=it")
    assert contact_link("Run 7", "a/b").url == (
        "https://help.example.org/new?text=Run%207%0A%0Aa%2Fb&team=it"
    )

    configure(contact="https://help.example.org/new")
    link = contact_link("Run 7", "a/b")
    assert (link.url, link.copied) == ("https://help.example.org/new", "Run 7\n\na/b")


def test_without_a_contact_there_is_no_link():
    assert contact_link("Run 7") is None


@pytest.mark.parametrize(
    "wrong",
    [
        "help",
        "http://help.example.org",
        "https://",
        "https://[",
        "https://a b",
        "javascript:a@b.c",
    ],
)
def test_anything_else_is_refused(configure, wrong):
    with pytest.raises(ValidationError, match="Enter an email address, or a link"):
        configure(contact=wrong)
