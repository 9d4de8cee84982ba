"""Who is in a chat now.

Every page of a shared chat announces itself every few seconds; nothing is saved, and a page
that falls silent is gone.
"""

import time
from dataclasses import dataclass, field

from agents.access.names import initials

HEARTBEAT_SECONDS = 5.0
MISSED_HEARTBEATS = 2.5


@dataclass(frozen=True, slots=True)
class Person:
    pk: int
    name: str

    @property
    def initials(self) -> str:
        return initials(self.name)


@dataclass(slots=True)
class Presence:
    """The pages that have announced themselves to this one, and when."""

    last_seen: dict[str, tuple[Person, float]] = field(default_factory=dict)

    def here(self, tab: str, person: Person) -> None:
        self.last_seen[tab] = (person, time.monotonic())

    def remove(self, tab: str) -> None:
        self.last_seen.pop(tab, None)

    def people(self) -> tuple[Person, ...]:
        """Return each person once, by name, regardless of open pages."""
        oldest = time.monotonic() - HEARTBEAT_SECONDS * MISSED_HEARTBEATS
        self.last_seen = {
            tab: entry for tab, entry in self.last_seen.items() if entry[1] >= oldest
        }
        people = {person.pk: person for person, _ in self.last_seen.values()}
        return tuple(sorted(people.values(), key=lambda person: person.name))
