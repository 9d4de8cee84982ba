"""Vectors as lists of 32-bit floats; numpy is only loaded where many are compared."""

import math
import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Vector = array[float]
else:
    Vector = array  # generic from Python 3.12 on
Vectors = list[Vector]


def normalized(numbers: Sequence[float]) -> Vector:
    """Return the vector of length 1 in the same direction."""
    length = max(math.hypot(*numbers), 1e-9)
    return array("f", [number / length for number in numbers])


def to_half_floats(vector: Vector) -> bytes:
    """Return a vector as it is saved: 16 bits per number."""
    return struct.pack(f"{len(vector)}e", *vector)


def from_half_floats(blob: bytes) -> Vector:
    """Return a vector that was saved."""
    return array("f", struct.unpack(f"{len(blob) // 2}e", blob))
