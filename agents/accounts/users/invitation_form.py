"""The form that invites people: by email address, or with a link for several."""

import re
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy as _

from agents.console.admin_classes.model_admin import GroupsField
from agents.db.installation import configured
from agents.models.catalog.rights import Role

from . import invitations, roles
from .forms import grantable_groups, grantable_roles

MAX_ADDRESSES = 50


class InviteForm(forms.Form):
    way = forms.ChoiceField(
        label=_("Invite"),
        choices=[
            ("email", _("By email address")),
            ("link", _("With a link for several users")),
        ],
        widget=forms.RadioSelect,
        initial="email",
    )
    emails = forms.CharField(
        label=_("Email addresses"),
        required=False,
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "placeholder": "aya@example.com",
                "spellcheck": "false",
                "autofocus": True,
            }
        ),
        help_text=_("One per line or separated by commas. Each link works once."),
    )
    max_uses = forms.IntegerField(label=_("Max uses"), required=False, min_value=1, initial=10)
    role = forms.ChoiceField(label=_("Role"), widget=forms.RadioSelect, initial=Role.PERSON)
    groups = GroupsField(
        label=_("Groups"),
        queryset=None,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.IntegerField(label=_("Expires after (days)"), min_value=1, max_value=365)

    def __init__(self, inviter: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.inviter = inviter
        allowed = grantable_roles(inviter)
        choices = [(role.value, role.label) for role in allowed]
        cast(forms.ChoiceField, self.fields["role"]).choices = choices
        self.fields["days"].initial = configured.INVITATION_DAYS.value
        cast(GroupsField, self.fields["groups"]).queryset = grantable_groups(inviter)
        limit = configured.MAX_INVITATION_USES.value
        uses = self.fields["max_uses"]
        uses.initial = min(10, limit)
        uses.help_text = _("At most %(most)d. Anyone with the link can use it.") % {
            "most": limit
        }

    def role_rows(self) -> list[tuple[Any, Any]]:
        """Return each role's box with what it allows."""
        boxes = self["role"].subwidgets
        return [(box, roles.DESCRIPTIONS[Role(box.data["value"])]) for box in boxes]

    def clean_emails(self) -> list[str]:
        addresses = re.split(r"[\s,;]+", self.cleaned_data["emails"].lower())
        emails = list(dict.fromkeys(filter(None, addresses)))
        wrong = [email for email in emails if not _is_email(email)]
        if wrong:
            raise forms.ValidationError(
                _("Not an email address: %(names)s.") % {"names": ", ".join(wrong[:5])}
            )
        if len(emails) > MAX_ADDRESSES:
            raise forms.ValidationError(
                _("Invite at most %(most)d users at once.") % {"most": MAX_ADDRESSES}
            )
        return emails

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("way") == "email" and "emails" in cleaned and not cleaned["emails"]:
            self.add_error("emails", _("Enter at least one email address."))
        limit = configured.MAX_INVITATION_USES.value
        if cleaned.get("way") == "link" and not 1 <= (cleaned.get("max_uses") or 1) <= limit:
            self.add_error("max_uses", _("Enter a number up to %(most)d.") % {"most": limit})
        return cleaned

    def terms(self) -> invitations.Terms:
        values = self.cleaned_data
        return invitations.Terms(
            role=Role(values["role"]),
            groups=tuple(values["groups"]),
            max_uses=values["max_uses"] or 1,
            days=values["days"],
        )


def _is_email(text: str) -> bool:
    try:
        validate_email(text)
    except forms.ValidationError:
        return False
    return len(text) <= 254
