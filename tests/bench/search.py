"""How long a question takes in a large library, on both databases."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.product import output
from tests.bench.rounds import Size
from tests.services import NotThere, PostgreSQL

ABOUT = """\
Search: questions of the product's set in a library of documents with 50 passages each, one
after the other. The first one loads the model and the vectors. “After a change”: a document was
added and another one deleted. The bound is a p95 of 300 ms at 50,000 passages."""


def measure(size: Size) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="ashiato-bench-") as folder:
        found = [_figures("SQLite", size.documents, Path(folder) / "sqlite", {})]
        try:
            with _postgresql(Path(folder) / "services") as url:
                env = {"ASHIATO_DATABASE_URL": url}
                row = _figures("PostgreSQL", size.documents, Path(folder) / "postgresql", env)
                found.append(row)
        except NotThere as error:
            print(f"Not measured on PostgreSQL: {error}")
    return found


def _figures(name: str, documents: int, data: Path, env: dict[str, str]) -> dict:
    env = {"ASHIATO_DATA": str(data), "ASHIATO_MODEL": "demo"} | env
    return {"database": name} | output("tests.bench.searched", documents, env=env)


@contextmanager
def _postgresql(folder: Path) -> Iterator[str]:
    server = PostgreSQL(folder)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
