"""Where users reach an administrator: an email address, or a page such as a ticket form."""

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .setting import Section, TextSetting

PAGE_START = "https://"
TEXT = "{text}"  # in a page's URL


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactLink:
    """A link that opens an email or a page, with what the user would have to write."""

    url: str
    is_page: bool = False
    copied: str = ""  # for the clipboard, if the page's URL can't have it


def contact_link(subject: str, body: str = "") -> ContactLink | None:
    """Return the link to an administrator; None if the installation has no contact."""
    contact = CONTACT.value
    if not contact:
        return None
    if not contact.startswith(PAGE_START):
        query = f"subject={quote(subject)}&body={quote(body)}"
        return ContactLink(url=f"mailto:{quote(contact, safe='@+')}?{query}")
    text = f"{subject}\n\n{body}".strip()
    if TEXT in contact:
        return ContactLink(url=contact.replace(TEXT, quote(text, safe="")), is_page=True)
    return ContactLink(url=contact, is_page=True, copied=text)


def _parse_contact(text: str) -> str:
    try:
        if not (text.startswith(PAGE_START) and urlsplit(text).hostname and " " not in text):
            validate_email(text)
    except (ValueError, ValidationError):
        raise ValidationError(
            _("Enter an email address, or a link that starts with https://.")
        ) from None
    return text


CONTACT = TextSetting(
    key="contact",
    section=Section.PEOPLE,
    label=gettext_lazy("Contact"),
    help=gettext_lazy(
        "Where “Ask an administrator” leads: an email address, or a link such as "
        "https://help.example.org/new?text={text}"
    ),
    maximum=500,
    parse=_parse_contact,
    environment="contact",
)
