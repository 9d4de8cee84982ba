"""Files of known MCP servers that belong in their working folder.

Some servers write their data next to their own program: it is lost with the next release, or
can't be written at all where packages are read-only. A variable tells them another place.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .config import ServerConfig


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
    return {
        file.variable: str(_locate(file, config.env.get(file.variable, ""), folder))
        for file in DATA_FILES
        if any(file.program.search(word) for word in config.argv)
    }


def _locate(file: DataFile, wanted: str, folder: Path) -> Path:
    work = folder / "work"
    name = wanted or file.name
    if wanted.startswith("/") or (work / name).exists():
        return work / name  # an absolute path replaces the folder
    # Files of earlier versions stay where they are: they may be links, which aren't followed.
    before = PurePosixPath(name).name
    found = [path for path in folder.glob(file.earlier + before) if not path.is_symlink()]
    return max(found, key=lambda path: path.lstat().st_mtime, default=work / name)
