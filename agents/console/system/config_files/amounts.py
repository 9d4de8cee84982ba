"""Amounts in configuration files: money in USD, which is saved in millionths of a dollar."""

from decimal import Decimal
from typing import TypeGuard

from agents.db.installation.setting import MICROS

MAX_AMOUNT = 2**63 - 1


def to_file(amount: int | None, *, is_money: bool) -> int | float | None:
    if amount is None or not is_money:
        return amount
    return amount // MICROS if amount % MICROS == 0 else amount / MICROS


def is_amount(value: object) -> TypeGuard[int | float]:
    """Return whether it can be one; a whole number, unless it is money."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= MAX_AMOUNT


def from_file(value: int | float, *, is_money: bool) -> int:
    """Return the saved amount. Raises ValueError if it isn't a whole number."""
    amount = Decimal(str(value)) * (MICROS if is_money else 1)
    if amount != int(amount) or amount > MAX_AMOUNT:
        raise ValueError(value)
    return int(amount)
