"""Personal data and secrets: detection, masking and pseudonyms."""

from .detectors import PiiKind
from .masking import StreamingMasker, find, mask
from .pseudonyms import ALIAS, Pseudonymizer
from .redaction import Redactor, redact
from .secrets import MASK, mask_secrets

__all__ = [
    "ALIAS",
    "MASK",
    "PiiKind",
    "Pseudonymizer",
    "Redactor",
    "StreamingMasker",
    "find",
    "mask",
    "mask_secrets",
    "redact",
]
