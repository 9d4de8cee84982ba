"""A part of a plan: the steps for one part of a question."""

from dataclasses import dataclass

from .steps import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`what` it does in a sentence. `lost` is what there was nothing for, `instead` what is
    looked at in its place; without steps nothing is left to look at.
    """

    steps: tuple[Fields, ...] = ()
    what: str = ""
    lost: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [step["name"] for step in self.steps]
