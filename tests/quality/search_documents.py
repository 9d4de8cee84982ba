"""Lays out the pages that the questions of `tests/quality/search` are about.

`python -m tests.quality.search_documents FOLDER` makes `development` and `unseen` below FOLDER,
each a set for `manage.py evaluate_search`.
"""

import gzip
import shutil
import sys
import tomllib
from pathlib import Path

from tests.quality.documents import unpacked

QUESTIONS = Path(__file__).with_name("search")


def lay_out(folder: Path) -> None:
    """Download the packages and write their pages below the folder, by package."""
    packages = tomllib.loads((QUESTIONS / "packages.toml").read_text())["packages"]
    for package in packages:
        with unpacked(package["name"]) as files:
            root = files / package["folder"]
            for path in sorted({path for glob in package["files"] for path in root.glob(glob)}):
                target = folder / package["name"] / path.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                if path.suffix == ".gz":
                    target.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
                elif not path.is_symlink():
                    shutil.copy(path, target)


if __name__ == "__main__":
    base = Path(sys.argv[1])
    for name in ("development", "unseen"):
        (base / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(QUESTIONS / f"{name}.jsonl", base / name / "questions.jsonl")
    lay_out(base / "development" / "documents")
    shutil.copytree(
        base / "development" / "documents", base / "unseen" / "documents", dirs_exist_ok=True
    )
