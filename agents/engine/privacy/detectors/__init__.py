"""Patterns of personal data in English and Japanese.

A detector is a pattern and a check: check digits and labels decide, because a bare number is
mostly an order, a date or a price. The patterns are RE2, so no text takes long.
"""

from .addresses import ADDRESS_DETECTORS
from .contact import EMAIL_DETECTORS, IP_DETECTORS, PHONE_DETECTORS
from .detector import PiiKind
from .identity import DOCUMENT_DETECTORS, IDENTITY_DETECTORS
from .keys import KEY_DETECTORS, URL_PASSWORD_DETECTORS
from .payment import PAYMENT_DETECTORS

__all__ = ["DETECTORS", "PiiKind"]

# Specific kinds first: of two that match the same text, the first names it.
DETECTORS = (
    *IDENTITY_DETECTORS,
    *EMAIL_DETECTORS,
    *URL_PASSWORD_DETECTORS,
    *PHONE_DETECTORS,
    *PAYMENT_DETECTORS,
    *DOCUMENT_DETECTORS,
    *ADDRESS_DETECTORS,
    *IP_DETECTORS,
    *KEY_DETECTORS,
)
