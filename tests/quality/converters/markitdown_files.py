"""Converts files with markitdown, in the environment that it is installed in.

Started by path with a folder of files and one for the results.
"""

import sys
from pathlib import Path


def main() -> None:
    from markitdown import MarkItDown  # type: ignore[import-not-found]

    converter = MarkItDown()
    for path in sorted(Path(sys.argv[1]).iterdir()):
        result = Path(sys.argv[2], f"{path.name}.md")
        if result.exists():
            continue
        try:
            text = converter.convert(str(path)).text_content
        except Exception:  # whatever a file does to it: then it read nothing
            text = ""
        result.write_text(text)


if __name__ == "__main__":
    main()
