"""Files of known MCP servers that belong in their working folder.

Some servers write their data next to their own program: it is lost with the next release, or
can't be written at all where packages are read-only. A variable tells them another place.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..configuration.config import ServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file, the variable that says where it is, and where earlier versions put it."""

    program: re.Pattern[str]
    variable: str
    name: str
    earlier: str


DATA_FILES = (
    DataFile(
        program=re.compile(r"(?:^|/)(?:mcp-)?server-memory(?:@[^/]*)?(?:/|$)"),
        variable="MEMORY_FILE_PATH",
        name="memory.jsonl",
        earlier="home/.npm/_npx/*/node_modules/@modelcontextprotocol/server-memory/dist/",
    ),
)


def variables(config: ServerConfig, folder: Path) -> dict[str, str]:
    """Return variables that point to the working folder; a relative path is resolved there."""
    paths = {}
    for file in DATA_FILES:
        if not any(file.program.search(arg) for arg in config.argv):
            continue
        configured = config.env.get(file.variable, "")
        name = configured or file.name
        path = folder / "work" / name  # an absolute path replaces the folder
        if not configured.startswith("/") and not path.exists():
            # Files of earlier versions stay where they are: they may be links, which aren't
            # followed.
            candidates = folder.glob(file.earlier + PurePosixPath(name).name)
            earlier = [candidate for candidate in candidates if not candidate.is_symlink()]
            path = max(earlier, key=lambda old: old.lstat().st_mtime, default=path)
        paths[file.variable] = str(path)
    return paths
