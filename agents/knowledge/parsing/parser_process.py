"""The child process: parses one file and writes the result to standard output, line by line.

It is started by path in a sandbox, and imports only the parsers.
"""

import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

TOO_DEEP = "This file is nested too deeply to be read."
OUT_OF_MEMORY = "This file needs too much memory to be read."


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    # Whatever a library prints must not end up between the lines of the result.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(**message: Any) -> None:
        output.write(json.dumps(message).encode() + b"\n")
        output.flush()

    try:
        _parse(request, send)
    except MemoryError:
        send(error=OUT_OF_MEMORY)
    except RecursionError:
        send(error=TOO_DEEP)


def _parse(request: dict[str, Any], send: Any) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    _load_file_types(request["file_types"])
    import parsers  # type: ignore[import-not-found]

    sys.setrecursionlimit(5_000)
    source = parsers.SourceFile(
        data=Path(request["path"]).read_bytes(),
        name=request["name"],
        mime_type=request["mime_type"],
        progress=lambda done, total: send(progress=[done, total]),
        seconds=request["seconds"],
        recognizes=request["recognizes"],
    )
    try:
        document = parsers.parse(source)
    except parsers.UnreadableDocument as error:
        send(error=str(error))
        return
    except parsers.NeedsRecognition:
        send(needs_recognition=True)
        return
    for part in document.parts:
        send(part={name: getattr(part, name) for name in part.__slots__})
    about = ("title", "pages", "language", "notes")
    send(done={name: getattr(document, name) for name in about})


def _load_file_types(path: str) -> None:
    """Load the one module that the parsers share with the product, without its package."""
    name = "agents.file_types"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    package, module = ModuleType("agents"), module_from_spec(spec)
    sys.modules |= {"agents": package, name: module}
    spec.loader.exec_module(module)
    package.file_types = module  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
