"""Numbers that prove themselves: the last digits follow from the others."""

from collections.abc import Mapping

# How long an account number is, with its country and its two digits of proof.
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 "
    "EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 "
    "IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 "
    "NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SD18 SE24 SI19 SK24 SM27 ST25 SV28 "
    "TL23 TN24 TR26 UA29 VA22 VG24 XK20"
)
IBAN_LENGTHS: Mapping[str, int] = {w[:2]: int(w[2:]) for w in _LENGTHS.split()}


def luhn(digits: str) -> bool:
    """Whether this can be the number of a payment card."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def iban(code: str) -> bool:
    """Whether this can be an international account number; it is written without spaces."""
    turned = code[4:] + code[:4]
    return int("".join(str(int(character, 36)) for character in turned)) % 97 == 1


def my_number(digits: str) -> bool:
    """Whether this can be the number that Japan gives each of its residents."""
    weights = [*range(2, 8), *range(2, 7)]
    rest = sum(w * int(digit) for w, digit in zip(weights, digits[-2::-1], strict=True)) % 11
    return int(digits[-1]) == (0 if rest <= 1 else 11 - rest)
