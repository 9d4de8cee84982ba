"""Parses the file: items by kind and name, with their lines."""

from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.plans import LocatedValue, PlanProblem, ValuePath, read_yaml

from .exporter import FORMAT_VERSION, HEADER
from .kind import ResourceValues
from .kinds import KINDS

MAX_FILE_BYTES = 800_000
MAX_ENTRIES = 1_000
HEADER_EXAMPLE = f"{HEADER}: {FORMAT_VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """An item in the file; `mistake` says why it is invalid."""

    line: int
    content: LocatedValue
    mistake: str = ""

    @property
    def values(self) -> ResourceValues:
        return dict(self.content.plain) if isinstance(self.content.value, dict) else {}

    @property
    def schedule_count(self) -> int:
        """How many schedules it has, each of which takes as long as an item."""
        fields = self.content.value if isinstance(self.content.value, dict) else {}
        schedules = fields["schedules"].value if "schedules" in fields else None
        return len(schedules) if isinstance(schedules, list) else 0

    def find_line(self, path: ValuePath) -> int:
        """Return the line of this part, or of the item."""
        line = self.line
        located = self.content
        for key in path:
            if isinstance(located.value, dict) and key in located.value:
                line = located.names[str(key)][0]
                located = located.value[key]
            elif isinstance(located.value, list) and isinstance(key, int):
                located = located.value[key]
                line = located.line
            else:
                break
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    sections: dict[str, dict[str, FileEntry]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: tuple[PlanProblem, ...] = ()


def parse_file(text: str) -> ConfigFile:
    """Parse the file as far as readable, with messages about the rest."""
    if len(text.encode(errors="replace")) > MAX_FILE_BYTES:
        params = {"limit": f"{MAX_FILE_BYTES:,}"}
        return _reject_file(_("The file is larger than %(limit)s bytes.") % params)
    root, problems = read_yaml(text)
    problems = [replace(problem, message=translate(problem.message)) for problem in problems]
    if root is None or not isinstance(root.value, dict):
        return ConfigFile(problems=tuple(problems or [_header_problem(1)]))
    header = root.value.get(HEADER)
    if header is None or header.value != FORMAT_VERSION or isinstance(header.value, bool):
        problems.append(_header_problem(header.line if header else root.line))
    sections: dict[str, dict[str, FileEntry]] = {}
    lines = {key: position[0] for key, position in root.names.items()}
    for key, section in root.value.items():
        if key == HEADER:
            continue
        if key not in KINDS:
            message = _("Unknown section: %(name)s. Use %(known)s.")
            message %= {"name": key, "known": ", ".join(KINDS)}
            problems.append(PlanProblem(message=message, line=lines[key]))
        elif not isinstance(section.value, dict | None):
            message = _("Must map names to their settings.")
            problems.append(PlanProblem(message=message, line=lines[key]))
        else:
            sections[key] = {name: _parse_entry(section, name) for name in section.value or ()}
    entries = [entry for section in sections.values() for entry in section.values()]
    if sum(1 + entry.schedule_count for entry in entries) > MAX_ENTRIES:
        params = {"limit": f"{MAX_ENTRIES:,}"}
        return _reject_file(_("A file can contain up to %(limit)s entries.") % params)
    return ConfigFile(sections=sections, lines=lines, problems=tuple(problems))


def _parse_entry(section: LocatedValue, name: str) -> FileEntry:
    content = section.value[name]
    is_mapping = isinstance(content.value, dict | None)
    mistake = "" if is_mapping else _("Must contain settings, one “name: value” per line.")
    return FileEntry(line=section.names[name][0], content=content, mistake=mistake)


def _header_problem(line: int) -> PlanProblem:
    message = _("This isn't a configuration file. It must start with %(it)s.")
    return PlanProblem(message=message % {"it": HEADER_EXAMPLE}, line=line)


def _reject_file(message: str) -> ConfigFile:
    return ConfigFile(problems=(PlanProblem(message=message),))
