"""Who is in a session just now. Every page of a shared one says so every few seconds, and
hears the others; nothing of it is kept, and whoever falls silent is gone."""

import time
from dataclasses import dataclass, field

HEARTBEAT_SECONDS = 5.0
MISSED_HEARTBEATS = 2.5


@dataclass(frozen=True, slots=True)
class Person:
    pk: int
    name: str

    @property
    def initials(self) -> str:
        """Two letters; of scripts in which one is as wide as two, one."""
        return self.name[:2].upper() if self.name[:2].isascii() else self.name[:1]


@dataclass(slots=True)
class Presence:
    """Whose pages one page has heard of, and when."""

    heard: dict[str, tuple[Person, float]] = field(default_factory=dict)

    def here(self, tab: str, person: Person) -> None:
        self.heard[tab] = (person, time.monotonic())

    def gone(self, tab: str) -> None:
        self.heard.pop(tab, None)

    def people(self) -> tuple[Person, ...]:
        """Each once, however many pages they have open, by their names."""
        oldest = time.monotonic() - HEARTBEAT_SECONDS * MISSED_HEARTBEATS
        self.heard = {tab: said for tab, said in self.heard.items() if said[1] >= oldest}
        here = {person.pk: person for person, _ in self.heard.values()}
        return tuple(sorted(here.values(), key=lambda person: person.name))
