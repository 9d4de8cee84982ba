"""Encrypted columns.

Lists, forms, logs and exports show a mask or nothing. Code that needs the secret calls
`row.headers.reveal()`.
"""

import base64
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django import forms
from django.conf import settings
from django.core.validators import EMPTY_VALUES
from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.utils.translation import gettext as _

MASK = "••••••••"


class UnreadableSecret(Exception):
    """Raised when a secret was encrypted with a key that isn't configured."""

    def __str__(self) -> str:
        return _("This secret was encrypted with a key that isn't configured. Enter it again.")


@dataclass(frozen=True, slots=True, repr=False)
class EncryptedValue:
    """An encrypted secret; falsy if there is none."""

    token: str
    empty: str = field(default='""', compare=False)

    def reveal(self) -> Any:
        """Return the secret; raise UnreadableSecret if no key fits."""
        if not self.token:
            return json.loads(self.empty)
        try:
            return json.loads(_fernet().decrypt(self.token.encode()))
        except InvalidToken as error:
            raise UnreadableSecret from error

    def rotate(self) -> str:
        """Re-encrypt with the newest key; unreadable secrets stay, as their key may return."""
        try:
            return _fernet().rotate(self.token.encode()).decode() if self.token else ""
        except InvalidToken:
            return self.token

    def __bool__(self) -> bool:
        return bool(self.token)

    def __str__(self) -> str:
        try:
            return MASK if self.reveal() else ""
        except UnreadableSecret as error:
            return str(error)

    __repr__ = __str__


def encrypt(value: Any, empty: str = '""') -> EncryptedValue:
    return EncryptedValue(_fernet().encrypt(json.dumps(value).encode()).decode(), empty)


class _EncryptedAttribute(DeferredAttribute):
    """Encrypts what is assigned, so that a row never holds a plain secret."""

    def __set__(self, row: models.Model, value: Any) -> None:
        row.__dict__[self.field.attname] = self.field.to_python(value)


if TYPE_CHECKING:
    # Rows accept the plain secret and return the encrypted value.
    _SealedTextField = models.TextField[Any, EncryptedValue]
else:
    _SealedTextField = models.TextField


class EncryptedTextField(_SealedTextField):
    """An encrypted text; an empty form field leaves it unchanged."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any  # read by the mypy plugin

    descriptor_class = _EncryptedAttribute
    empty_values = [*EMPTY_VALUES, EncryptedValue("")]
    empty = '""'

    def to_python(self, value: Any) -> EncryptedValue:
        if isinstance(value, EncryptedValue):
            return value
        if value in EMPTY_VALUES:
            return EncryptedValue("", self.empty)
        return encrypt(value, self.empty)

    def from_db_value(self, value: str | None, *_arguments: Any) -> EncryptedValue:
        return EncryptedValue(value or "", self.empty)

    def get_prep_value(self, value: Any) -> str:
        return self.to_python(value).rotate()

    def value_from_object(self, row: models.Model) -> None:  # type: ignore[override]
        """Return nothing, because forms and exports would display it."""

    def value_to_string(self, row: models.Model) -> str:
        return ""

    def save_form_data(self, row: models.Model, data: Any) -> None:
        if data not in (None, ""):
            super().save_form_data(row, data)

    def formfield(self, **options: Any) -> forms.Field | None:
        widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
        # A hidden field would reveal what was typed.
        defaults = {"widget": widget, "show_hidden_initial": False, **options}
        return super().formfield(**defaults)


class EncryptedJSONField(EncryptedTextField):
    """An encrypted JSON object; an empty form field leaves it unchanged, `{}` clears it."""

    empty = "{}"

    def formfield(self, **options: Any) -> forms.Field | None:
        defaults = {"form_class": _SecretJSONField, "widget": WriteOnlyTextarea, **options}
        return super().formfield(**defaults)


class WriteOnlyTextarea(forms.Textarea):
    """Like a password field: input isn't displayed again, even after an error."""

    def format_value(self, value: Any) -> str:
        return ""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        again = (
            {"placeholder": _("Enter it again. Secrets are never displayed.")} if value else {}
        )
        return super().get_context(name, value, {**(attrs or {}), **again})


class _SecretJSONField(forms.JSONField):
    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)


def _fernet() -> MultiFernet:
    return _derive_fernet(tuple(settings.ENCRYPTION_KEYS))


@lru_cache(maxsize=8)
def _derive_fernet(phrases: tuple[str, ...]) -> MultiFernet:
    fernets = []
    for phrase in phrases:
        # With its own context, because the phrase may be Django's secret key, which also signs.
        kdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"secrets at rest")
        fernets.append(Fernet(base64.urlsafe_b64encode(kdf.derive(phrase.encode()))))
    return MultiFernet(fernets)
