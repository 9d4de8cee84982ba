"""What the agents of one run have read, and the numbers of its passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

Data = Mapping[str, Any]
PASSAGE_HEAD = re.compile(r"^\[(\d{1,3})\] (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a passage comes from, as it is saved with the run.

    `id` is the same whenever the passage is found. `kind`, `part` and `label` are its place: a
    page, slide or sheet. `digest` is of the text that the model read, so that an old answer
    keeps its evidence if the document changes.
    """

    id: str
    title: str
    document: int | None = None
    chunk: int | None = None
    heading: str = ""
    kind: str = ""
    part: int | None = None
    label: str = ""
    owner: int | None = None  # the user whose collection it is from, if it is a user's
    digest: str = ""
    score: float = 0.0
    number: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Data) -> Self:
        known = cls.__dataclass_fields__
        return cls(**{name: value for name, value in data.items() if name in known})


@dataclass(slots=True)
class RunMaterial:
    """Shared by all agents of a run, so that a number means one passage in all of it.

    `sources` are all passages by number; `citable` are those that a model was sent in this run,
    and `earlier` those in the history of the chat, with their text. `suspect_steps` returned
    text that looks like instructions.
    """

    sources: dict[int, Source] = field(default_factory=dict)
    citable: set[int] = field(default_factory=set)
    earlier: dict[int, str] = field(default_factory=dict)
    has_searched: bool = False
    has_untrusted: bool = False
    suspect_steps: list[int] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_history(cls, messages: Sequence[Data]) -> Self:
        """Start with what earlier runs of the chat have read, as far as it is sent again."""
        material = cls()
        for message in messages:
            # Files, too: the user attached them, but others may have written them.
            if "untrusted" in message or "material" in message:
                material.has_untrusted = True
                material.suspect_steps += [0] if message.get("is_suspect") else []
            if message.get("sources"):
                texts = passage_texts(str(message["content"]))
                for source in recorded_sources(message["sources"]):
                    material._add(source)
                    material.earlier[source.number] = texts.get(source.number, "")
        return material

    def number(self, sources: Sequence[Source]) -> list[Source]:
        """Give new passages the next numbers; known ones keep theirs."""
        numbered: list[Source] = []
        for source in sources:
            number = self._numbers.get(source.id) or max(self.sources, default=0) + 1
            numbered.append(replace(source, number=number))
            self._add(numbered[-1])
        return numbered

    def record(self, response: Data) -> None:
        """Remember what a tool's result, as it is saved, adds to what was read."""
        if "sources" in response:
            self.has_searched = True
            for source in recorded_sources(response["sources"]):
                self._add(source)
                self.citable.add(source.number)
        self.has_untrusted |= bool(response.get("is_untrusted"))
        if response.get("suspicion"):
            self.suspect_steps.append(response["step"])

    def _add(self, source: Source) -> None:
        self._numbers.setdefault(source.id, source.number)
        self.sources[source.number] = source


def recorded_sources(values: Any) -> list[Source]:
    """Return the sources in saved data; what isn't one is left out."""
    found = values if isinstance(values, list) else []
    return [
        Source.from_dict(value)
        for value in found
        if isinstance(value, dict) and isinstance(value.get("number"), int) and "title" in value
    ]


def passage_texts(observation: str) -> dict[int, str]:
    """Return the texts of numbered passages in a search result."""
    heads = list(PASSAGE_HEAD.finditer(observation))
    ends = [*(head.start() for head in heads[1:]), len(observation)]
    return {
        int(head[1]): observation[head.end() : end].strip()
        for head, end in zip(heads, ends, strict=False)
    }
