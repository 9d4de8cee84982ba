"""Measures quality and writes docs/quality.md: `make quality`, or ONLY=evidence for a part."""

import argparse
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quality.md"
SECTIONS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("[a-z]*.py")
    if path.stem not in {"conftest", "search_documents"}
)
HEADER = """\
# Quality

What documents, answers and learning are worth, measured on files and texts that weren't
written for the product or by whoever wrote the code. `make quality` measures all of it and
writes this page; each part says when and how it was measured.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    names = parser.parse_args().only
    for name in names:
        module = import_module(f"tests.quality.{name}")
        print(f"{module.TITLE}…", flush=True)
        figures = module.measure().strip()
        today = datetime.now(UTC).date().isoformat()
        note = f"`make quality ONLY={name}`, {today}, Python {sys.version.split()[0]}"
        section = f"\n## {module.TITLE}\n\n{module.INTRO.strip()}\n\n{figures}\n\n*{note}*\n"
        print(figures, flush=True)
        PAGE.write_text(replace_section(read_page(), module.TITLE, section))
    return 0


def read_page() -> str:
    return PAGE.read_text() if PAGE.exists() else HEADER


def replace_section(text: str, title: str, section: str) -> str:
    """Return the page with this section, in the place it had."""
    before, heading, following = text.partition(f"\n## {title}\n")
    if not heading:
        return text + section
    _old, next_heading, rest = following.partition("\n## ")
    return before + section + next_heading + rest


if __name__ == "__main__":
    sys.exit(main())
