"""The child process: parses one file and writes the result to standard output, line by line.

It is started by path in a sandbox, and imports only the parsers.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from agents.engine.sentences import Sentence as _
from agents.engine.sentences import pack

TOO_DEEP = _("This file is nested too deeply to be read.")
OUT_OF_MEMORY = _("This file needs too much memory to be read.")


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    # Whatever a library prints must not end up between the lines of the result.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(**message: Any) -> None:
        output.write(json.dumps(message).encode() + b"\n")
        output.flush()

    try:
        sys.path.insert(0, str(Path(__file__).parent))
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
        document = parsers.parse(source)
        for part in document.parts:
            send(part={name: getattr(part, name) for name in part.__slots__})
        fields = ("title", "pages", "language", "notes", "links")
        send(done=pack({name: getattr(document, name) for name in fields}))
    except MemoryError:
        send(error=pack(OUT_OF_MEMORY))
    except RecursionError:
        send(error=pack(TOO_DEEP))
    except parsers.NeedsConversion as error:
        send(needs_conversion=error.kind)
    except parsers.UnreadableDocument as error:
        send(error=pack(str(error)))
    except parsers.NeedsRecognition:
        send(needs_recognition=True)


if __name__ == "__main__":
    main()
