"""The file as it is read: its things by kind and name, and where each of them stands."""

from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from agents.engine.plans.yaml_reader import Path, Problem, Written, read
from agents.runs.engine_messages import told

from .exporter import FORMAT, HEADER
from .kind import Values
from .kinds import KINDS

MOST_BYTES = 800_000
MOST_THINGS = 1_000
EXAMPLE = f"{HEADER}: {FORMAT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A thing in the file; `mistake` says why it is none."""

    line: int
    written: Written
    mistake: str = ""

    @property
    def values(self) -> Values:
        return dict(self.written.plain) if isinstance(self.written.value, dict) else {}

    def line_of(self, path: Path) -> int:
        """Where this part of it is named, or else the thing itself."""
        line, here = self.line, self.written
        for key in path:
            if isinstance(here.value, dict) and key in here.value:
                line = here.names[str(key)][0]
            elif isinstance(here.value, list) and isinstance(key, int):
                line = here.value[key].line
            else:
                break
            here = here.value[key]
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    things: dict[str, dict[str, Entry]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def parsed(text: str) -> File:
    """All that can be read of it, and in words what cannot."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        most = {"limit": f"{MOST_BYTES:,}"}
        return _refused(_("This is longer than %(limit)s bytes.") % most)
    root, problems = read(text)
    problems = [replace(problem, message=told(problem.message)) for problem in problems]
    if root is None or not isinstance(root.value, dict):
        return File(problems=tuple(problems or [_no_file(1)]))
    header = root.value.get(HEADER)
    if header is None or header.value != FORMAT or isinstance(header.value, bool):
        problems.append(_no_file(header.line if header else root.line))
    return _sections(root, problems)


def _sections(root: Written, problems: list[Problem]) -> File:
    things: dict[str, dict[str, Entry]] = {}
    lines = {key: place[0] for key, place in root.names.items()}
    for key, section in root.value.items():
        if key == HEADER:
            continue
        if key not in KINDS:
            problems.append(_problem(lines[key], _unknown(key)))
        elif not isinstance(section.value, dict | None):
            problems.append(_problem(lines[key], _("Write names, and what they are.")))
        else:
            things[key] = {name: _entry(section, name) for name in section.value or ()}
    if sum(map(len, things.values())) > MOST_THINGS:
        most = {"limit": f"{MOST_THINGS:,}"}
        return _refused(_("A file tells of at most %(limit)s things.") % most)
    return File(things=things, lines=lines, problems=tuple(problems))


def _entry(section: Written, name: str) -> Entry:
    written = section.value[name]
    is_thing = isinstance(written.value, dict | None)
    mistake = "" if is_thing else _("Write what it is, line by line.")
    return Entry(line=section.names[name][0], written=written, mistake=mistake)


def _unknown(key: str) -> str:
    known = {"name": key, "known": ", ".join(KINDS)}
    return _("%(name)s is not known here; there are %(known)s.") % known


def _no_file(line: int) -> Problem:
    return _problem(line, _("This is no such file: it begins with %(it)s.") % {"it": EXAMPLE})


def _problem(line: int, message: str) -> Problem:
    return Problem(message=message, line=line)


def _refused(message: str) -> File:
    return File(problems=(Problem(message=message),))
