"""The text of an uploaded file."""

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

NOT_UTF8 = _("The file isn't UTF-8. Save it as UTF-8 and try again.")


def read_uploaded_text(
    file: UploadedFile | None, max_bytes: int, too_large: forms.ValidationError
) -> str:
    """Return the file's text, or an empty string without a file; raise ValidationError."""
    if file is None:
        return ""
    if (file.size or 0) > max_bytes:
        raise too_large
    try:
        return str(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise forms.ValidationError(NOT_UTF8) from error
