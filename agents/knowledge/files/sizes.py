"""Sizes of files for users."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _


def format_megabytes(size: int) -> str:
    """Return a size in MB with one decimal; less than that is rounded up."""
    megabytes = max(size / 1_000_000, 0.1) if size else 0
    return _("%(size)s MB") % {"size": number_format(round(megabytes, 1), use_l10n=True)}
